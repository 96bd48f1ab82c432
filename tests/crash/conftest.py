collect_ignore = ["app.py"]  # belongs to a running crash test, and asks for its folder when imported
