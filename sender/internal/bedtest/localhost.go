package bedtest

import "strings"

// AtLocalhost returns a loopback URL by name, so that it must be resolved.
func AtLocalhost(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }
