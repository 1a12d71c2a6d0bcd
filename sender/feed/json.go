package feed

import (
	"encoding/json"
	"strconv"

	"github.com/surehook/surehook/sender"
)

// AppendEvent appends an event in the feed's JSON: the bytes of its body as they are. A
// redacted event has no body any more; it is written as its id, type, object and
// version, and "redacted":true.
func AppendEvent(b []byte, e *sender.StoredEvent) []byte {
	if !e.Redacted {
		return append(b, e.Body...)
	}
	b = append(b, `{"id":`...)
	b = appendString(b, e.ID)
	b = append(b, `,"type":`...)
	b = appendString(b, e.Type)
	b = append(b, `,"object":{"type":`...)
	b = appendString(b, e.Object.Type)
	b = append(b, `,"id":`...)
	b = appendString(b, e.Object.ID)
	b = append(b, `},"version":`...)
	b = strconv.AppendInt(b, e.Version, 10)
	return append(b, `,"redacted":true}`...)
}

// AppendJSON appends the page as [NewHandler] writes it.
func (p *Page) AppendJSON(b []byte) []byte {
	b = append(b, `{"data":[`...)
	for i := range p.Events {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendEvent(b, &p.Events[i])
	}
	b = append(b, `],"next_cursor":`...)
	return append(appendString(b, p.Next), '}')
}

func appendString(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string always encodes
	return append(b, text...)
}
