"""What is taken for a command of the docs."""

from pathlib import Path

from tests.support.documents import commands_of

PAGE = """# A page

```sh
first
```

<!-- not run: it takes a GPU -->
```sh
second
```

Save this as `model.yaml`:

```yaml
kind: HybridModel
```

An excerpt:

```yaml
spec: {}
```

```sh
third
```
"""


def test_commands_come_in_order_files_by_name_and_what_is_left_out_with_its_reason(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    commands = commands_of(page)
    assert commands.script == "first\nthird\n"
    assert commands.files == {"model.yaml": "kind: HybridModel\n"}
    assert commands.left_out == ("it takes a GPU",)
