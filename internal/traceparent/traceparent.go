// Package traceparent says what is a trace context.
package traceparent

// Valid tells whether s is a value of the header traceparent of version 00: its ids are in
// lower-case hex, and neither of them is zero (W3C Trace Context, section 3.2). So it has
// 55 bytes, and can stand in a header.
func Valid(s string) bool {
	return len(s) == 55 && s[:3] == "00-" && id(s[3:35]) && s[35] == '-' && id(s[36:52]) && s[52] == '-' && hex(s[53:])
}

func id(s string) bool {
	for i := range len(s) {
		if s[i] != '0' {
			return hex(s)
		}
	}
	return false
}

func hex(s string) bool {
	for i := range len(s) {
		if c := s[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}
