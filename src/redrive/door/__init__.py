"""The door: what holds for every request, whichever room answers it.

How it is listened for, how many may ask and how long they may wait, who is asking, which letters a request is about,
and which HTTP status an error has. The API and the console stand behind it, and know nothing of each other.
"""
