"""How a user's pod template is laid over the operator's."""

from llamapool.manifests.overlay import lay_over


def test_objects_are_merged_field_by_field() -> None:
    assert lay_over({"a": {"x": 1, "y": 2}}, {"a": {"y": 3, "z": 4}}) == {"a": {"x": 1, "y": 3, "z": 4}}


def test_items_with_an_identity_are_merged_by_it_and_new_ones_come_behind() -> None:
    base = {"containers": [{"name": "server", "image": "i", "env": [{"name": "A", "value": "1"}]}]}
    overlay = {"containers": [{"name": "sidecar"}, {"name": "server", "env": [{"name": "B", "value": "2"}]}]}
    assert lay_over(base, overlay) == {
        "containers": [
            {
                "name": "server",
                "image": "i",
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            },
            {"name": "sidecar"},
        ]
    }


def test_any_other_list_is_replaced() -> None:
    assert lay_over({"args": ["a", "b"]}, {"args": ["c"]}) == {"args": ["c"]}


def test_null_leaves_the_base_as_it_is() -> None:
    assert lay_over({"a": 1}, {"a": None}) == {"a": 1}


def test_neither_side_is_changed() -> None:
    base, overlay = {"a": {"x": 1}}, {"a": {"y": 2}}
    lay_over(base, overlay)
    assert (base, overlay) == ({"a": {"x": 1}}, {"a": {"y": 2}})
