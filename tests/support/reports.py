"""What reports of `explain` say."""

from fusec.dispatch.explain import Explanation


def library_calls(report: Explanation) -> int:
    """How many calls of libraries a report lists; a line may stand for several."""
    called = [text for topic, text in report.lines if topic == "library call"]
    return sum(int(text.partition(" x ")[0]) if text[0].isdigit() else 1 for text in called)
