"""python -m dashboards: writes the chart's dashboards anew."""

from dashboards.files import DASHBOARDS, FOLDER, text_of


def main() -> None:
    """Write every dashboard to its file."""
    for name, build in DASHBOARDS.items():
        path = FOLDER / f"{name}.json"
        path.write_text(text_of(build), encoding="utf-8")
        print(f"dashboards: {path.relative_to(FOLDER.parents[2])}")  # noqa: T201 - a command line prints


if __name__ == "__main__":
    main()
