"""No file of the interface imports, by way of others, itself: late imports count too."""

from __future__ import annotations

from tests.hygiene.sources import files, imports_of, module_file, module_name


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules of which each reaches every other (Tarjan), sorted."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in graph[name]:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                groups.append(sorted(group))

    for name in graph:
        if name not in index:
            visit(name)
    return sorted(groups)


def interface() -> dict[str, set[str]]:
    """What each module of the interface imports of it, however late, but not for types alone."""
    modules = {module_name(path): path for path in files("acp_tui")}
    return {
        name: {
            each.module
            for each in imports_of(path)
            if not each.for_types and each.module in modules and module_file(each.module) != path
        }
        for name, path in modules.items()
    }


def test_the_search_finds_circles() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"f"}, "f": {"e"}}
    assert circles(graph) == [["a", "b", "c"], ["e", "f"]]


def test_the_interface_has_no_circle_of_imports() -> None:
    assert circles(interface()) == []
