"""The files source: a workspace watched for handoffs and returns that agents write as files."""

from agentwatch.sources.files.names import is_candidate, to_name, to_path
from agentwatch.sources.files.read import FileRefusedError, FileText, read_file
from agentwatch.sources.files.rules import RULES
from agentwatch.sources.files.scan import scan_candidates
from agentwatch.sources.files.settings import DEFAULT_PRUNED, MAX_BYTES, FilesSettings
from agentwatch.sources.files.source import FilesSource, scan_once

__all__ = [
    "DEFAULT_PRUNED",
    "MAX_BYTES",
    "RULES",
    "FileRefusedError",
    "FileText",
    "FilesSettings",
    "FilesSource",
    "is_candidate",
    "read_file",
    "scan_candidates",
    "scan_once",
    "to_name",
    "to_path",
]
