package sender

import "strings"

// Headers has the headers of an attempt's request and of its answer, as they are kept for
// those who look for a fault. It has the names of all headers, and the values of those
// that hold no secrets by their nature. The other values read "redacted": those of a
// subscription's own headers, signatures, cookies, credentials, and all that the library
// does not know. It is empty if none were kept.
//
// As a text it has a line "Name: value" for each header of the request, in the order of
// their names, an empty line, and the same for the answer. It is valid UTF-8 without
// control characters besides the ends of lines, and has at most dispatch.MaxHeaders
// bytes.
type Headers string

// Header is a header as it is kept. If there were more than are kept, the last one of a
// request or of an answer has the name "…", and its value says how many were left out.
type Header struct {
	Name  string
	Value string
}

// Request returns the headers of the request.
func (h Headers) Request() []Header {
	request, _ := h.sides()
	return lines(request)
}

// Answer returns the headers of the answer.
func (h Headers) Answer() []Header {
	_, answer := h.sides()
	return lines(answer)
}

func (h Headers) sides() (request, answer string) {
	if answer, ok := strings.CutPrefix(string(h), "\n"); ok {
		return "", answer
	}
	request, answer, _ = strings.Cut(string(h), "\n\n")
	return request, answer
}

func lines(side string) (all []Header) {
	for line := range strings.Lines(side) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		all = append(all, Header{name, value})
	}
	return all
}
