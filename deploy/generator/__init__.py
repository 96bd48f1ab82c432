"""What is written here by machine: rules, alerts and dashboards. `python -m deploy.generator` writes it all."""
