"""Every error that acp raises on purpose, as one tree.

The message of each is one line for people: what is wrong, where, and what to do. A `Refused`, which
quotes what it refuses, makes its own safe; the others are made safe where they are printed. Standard
library only.

* AcpError
  * InvalidInput
    * BadLocation
    * CodecError
    * LinkError
    * SettingsError
    * SetupError
    * Unfit
    * WrongValue
  * NetworkError
    * AgentError
    * CannotListen
    * ChannelClosed
    * NoMulticast
    * NoPipe
    * PeerRefused
    * ServiceError
  * NoCollaboration
  * NotStarted
    * AgentRunning
    * CannotClaim
    * LaunchError
    * LoopRunning
    * RehearsalError
    * SessionFailed
      * NoAnswer
      * NoLiveSession
    * SpawnError
  * Refused
    * AlreadyThere
    * BadAddress
    * BadManifest
    * Busy
    * CommandError
    * Failed
    * LeaseElsewhere
    * NewerManifest
    * NotAccepted
    * NotPinned
    * NotShared
    * PresetError
    * SharingError
      * HistoryRewritten
      * InDoubt
      * NotInStore
      * PiecesMissing
      * StoreRefused
      * StoreUnreachable
      * TipMoved
  * Stuck
  * Unusable
    * BadArchive
    * BadRecording
      * NoRecording
    * CannotRead
    * ClaimError
      * Held
      * Lost
    * GitFailed
    * IdentityError
    * Incomplete
    * LogError
      * Moved
    * OutOfStep
    * StoreError
    * Unreadable
    * WriteError
  * WireError
"""

from __future__ import annotations

from acp_core.model.text import clean_line

LONGEST = 2_000
"""Characters of a refusal; one that lists more ends in "…"."""


class AcpError(Exception):
    """Base of all of them."""


class Refused(AcpError):
    """A write that is not done, and why. Nothing was changed.

    Attributes:
        code: the exit code that a command ends with.

    Args:
        message: why, with words of files, agents and people as they stand there: they are made safe
            to show here, on one line of at most `LONGEST` characters.
        code: the exit code.
    """

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(clean_line(message, LONGEST))
        self.code = code


class CommandError(Refused):
    """A command cannot do, or not go on with, what was asked of it."""


class InvalidInput(AcpError):
    """Something that was given is not what it should be: settings, presets, links, answers."""


class Unusable(AcpError):
    """A file, a store or a program on this machine cannot be used as it is."""


class NotStarted(AcpError):
    """A process or a program does not run; the message says why, or is empty."""


class NetworkError(AcpError):
    """Another machine, or the network between, did not do what it was asked to."""
