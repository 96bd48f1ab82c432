"""Writes every generated file of this folder: python -m deploy.generator [--runbooks https://wiki.example/runbooks]."""

import argparse

from deploy.generator.alert_files import RUNBOOKS
from deploy.generator.files import DEPLOY, generated


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m deploy.generator", description="Write rules, alerts, dashboards.")
    parser.add_argument("--runbooks", default=RUNBOOKS, help="where runbooks are found: the beginning of their links")
    for name, text in generated(runbooks=parser.parse_args().runbooks).items():
        (DEPLOY / name).parent.mkdir(parents=True, exist_ok=True)
        (DEPLOY / name).write_text(text, encoding="utf-8")
        print(f"deploy/{name}")


if __name__ == "__main__":
    main()
