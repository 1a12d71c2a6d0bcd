package rules

// Bytes bounds the bodies of what one claim takes, or of a page of events: see
// dispatch.ClaimParams.Bytes and history.EventQuery.Bytes. The deliveries of an event share its
// body. It is for one goroutine.
type Bytes struct {
	bounded bool
	left    int64
	events  map[int64]bool // whose bodies are counted
	over    bool
}

// NewBytes is a bound of most bytes; 0: there is no bound.
func NewBytes(most int64) *Bytes { return &Bytes{bounded: most > 0, left: most} }

// Again makes b a new bound, as NewBytes does, and keeps its memory.
func (b *Bytes) Again(most int64) *Bytes {
	clear(b.events)
	*b = Bytes{bounded: most > 0, left: most, events: b.events}
	return b
}

// Take counts a delivery of an event whose body has a size, or the event itself, and reports
// whether it may be taken. The first one always may. After one that may not, no other may: so
// small bodies do not pass a large one for ever.
func (b *Bytes) Take(event, size int64) bool {
	switch {
	case !b.bounded || b.events[event] && !b.over:
		return true
	case b.over || len(b.events) > 0 && size > b.left:
		b.over = true
		return false
	case b.events == nil:
		b.events = map[int64]bool{}
	}
	b.events[event] = true
	b.left -= size
	return true
}

// Over reports whether something was refused.
func (b *Bytes) Over() bool { return b.over }
