//! The built user interface inside the binary, and the rules every page is served by: headers, token, path prefix.
