"""Settings under which DuckDB encrypts what it writes to disk for want of memory.

The key is drawn for each instance and never leaves its memory. DuckDB's built-in cipher draws it, and its
nonces, from a generator that is not cryptographic, which DuckDB calls unsafe; its other cipher comes with an
extension for HTTP, which a process with private rows had better not load. The folder's rights are the first
protection (`private_folders`); this is the second, for disks that are copied, lost or backed up.
"""

from __future__ import annotations

ENCRYPTED = ("SET force_mbedtls_unsafe = true", "SET temp_file_encryption = true")
