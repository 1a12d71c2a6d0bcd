package dispatch

import "github.com/surehook/surehook/sender"

// HeadersOf says of which attempts the headers are kept.
type HeadersOf string

// The values of Config.Headers.
const (
	HeadersOfFailed HeadersOf = "failed"
	HeadersOfAll    HeadersOf = "all"
	HeadersOfNone   HeadersOf = "none"
)

func (h HeadersOf) known() bool {
	return h == HeadersOfFailed || h == HeadersOfAll || h == HeadersOfNone
}

func (h HeadersOf) keeps(class sender.Class) bool {
	return h == HeadersOfAll || h == HeadersOfFailed && class != sender.ClassNone
}
