collect_ignore = ["app.py", "way_back_app.py"]  # belong to a running crash test, and ask for its folder when imported
