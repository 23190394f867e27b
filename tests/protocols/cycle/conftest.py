"""What the tests of cycles share."""

from tests.cli.conftest import acp as acp
