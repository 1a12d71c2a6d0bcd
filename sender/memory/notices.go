package memory

import (
	"cmp"
	"errors"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
)

// noticePrefix is what notices' ids begin with.
const noticePrefix = "ntc_"

// notice is one with its number, from 1.
type notice struct {
	no int64
	sender.Notice
}

// notify stores a notice, and publishes the event that is made of it.
func (w *batch) notify(n sender.Notice) error {
	s := w.tx.store
	n.ID = cmp.Or(n.ID, newid.New(noticePrefix, w.now))
	if n.CreatedAt.IsZero() {
		n.CreatedAt = w.now
	}
	set(w.tx, &s.noticed, s.noticed+1)
	set(w.tx, &s.notices, append(s.notices, &notice{no: s.noticed, Notice: n}))
	w.notices = append(w.notices, n)
	if w.Announce == nil {
		return nil
	}
	d, ok := w.Announce(n)
	if !ok {
		return nil
	}
	d.Notice = true
	if _, err := s.publish(w.tx, &d); !errors.Is(err, sender.ErrNotFound) {
		return err
	}
	return nil // there is nobody to tell
}
