package memory

import (
	"errors"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

// notice is a notice with its number, from 1.
type notice struct {
	no int64
	sender.Notice
}

// notify stores a notice, and publishes the event that is made of it.
func (w *batch) notify(n sender.Notice) error {
	s := w.tx.store
	n = rules.Stamped(n, w.now)
	set(w.tx, &s.noticed, s.noticed+1)
	set(w.tx, &s.notices, append(s.notices, &notice{no: s.noticed, Notice: n}))
	w.notices = append(w.notices, n)
	d, ok := rules.Announced(w.Announce, n)
	if !ok {
		return nil
	}
	if _, err := s.publish(w.tx, &d); !errors.Is(err, sender.ErrNotFound) {
		return err
	}
	return nil // there is nobody to tell
}
