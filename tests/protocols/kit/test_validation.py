"""What is said of values that a form or an option cannot take."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError, field_validator

from acp_core.protocols.kit.schema import problems


class Answers(BaseModel):
    text: str = Field("a", min_length=1, max_length=3)
    long: str = Field("aaaa", min_length=4)
    count: int = Field(1, ge=1, le=9)
    share: float = Field(0.5, gt=0, lt=1)
    kind: Literal["red", "blue"] = "red"
    names: list[str] = Field(["a"], min_length=1)
    sure: bool = False
    own: str = ""

    @field_validator("own")
    @classmethod
    def _own(cls, value: str) -> str:
        if value == "bad":
            raise ValueError("no agent is called bad")
        return value


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("text", "", "is missing"),
        ("text", "aaaa", "must have at most 3 characters"),
        ("text", 1, "must be text"),
        ("long", "a", "must have at least 4 characters"),
        ("count", "many", "must be a whole number"),
        ("count", 1.5, "must be a whole number"),
        ("count", 0, "must be at least 1"),
        ("count", 10, "must be at most 9"),
        ("share", "half", "must be a number"),
        ("share", 0, "must be more than 0.0"),
        ("share", 1, "must be less than 1.0"),
        ("kind", "green", "must be 'red' or 'blue'"),
        ("names", [], "is missing"),
        ("names", "a", "must be a list"),
        ("sure", "perhaps", "must be yes or no"),
        ("own", "bad", "no agent is called bad"),
    ],
)
def test_it_is_said_in_plain_words(name: str, value: Any, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Answers.model_validate({name: value})
    assert list(problems(caught.value)) == [(name, said)]
