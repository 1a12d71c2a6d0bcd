package sqlite

import (
	"bytes"
	"cmp"
	"database/sql"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
)

// attempt is one as it is stored.
type attempt struct {
	event int64
	sender.Attempt
}

// attemptsTogether is how many events' attempts are kept together at most, so that
// those of a delivery are found in few rows.
const attemptsTogether = 256

const attemptsFormat = 1

const insertAttempts = `INSERT INTO surehook_attempts (subscription, event, number, attempts) VALUES (?, ?, ?, ?)`

// storeAttempts stores attempts of a subscription.
func (w *work) storeAttempts(subscription int64, all []attempt) error {
	slices.SortFunc(all, func(a, b attempt) int {
		return cmp.Or(cmp.Compare(a.event, b.event), cmp.Compare(a.Number, b.Number))
	})
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].event/attemptsTogether == all[0].event/attemptsTogether {
			n++
		}
		if err := w.execs(insertAttempts, subscription, all[0].event, all[0].Number, packAttempts(all[:n])); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

func packAttempts(all []attempt) []byte {
	b := append(make([]byte, 0, 24*len(all)), attemptsFormat)
	event := int64(0)
	for i := range all {
		a := &all[i]
		b = packInt(b, a.event-event)
		event = a.event
		b = packInt(b, int64(a.Number))
		b = packInt(b, micros(a.StartedAt))
		b = packInt(b, a.Duration.Microseconds())
		b = packInt(b, int64(a.StatusCode))
		b = packBytes(b, a.Class)
		if a.Class == sender.ClassNone && a.Error == "" && len(a.Snippet) == 0 && a.NextAttemptAt.IsZero() {
			b = append(b, 0)
			continue
		}
		b = append(b, 1)
		b = packBytes(b, a.Error)
		b = packBytes(b, a.Snippet)
		b = packInt(b, micros(a.NextAttemptAt))
	}
	return b
}

// unpackAttempts appends those of an event.
func unpackAttempts(to []sender.Attempt, b []byte, of int64) ([]sender.Attempt, error) {
	if len(b) == 0 || b[0] != attemptsFormat {
		return nil, errPacked
	}
	u := unpacker{b: b[1:]}
	for event := int64(0); len(u.b) > 0; {
		event += u.int()
		a := sender.Attempt{
			Number: int(u.int()), StartedAt: timeOf(u.int()), Duration: time.Duration(u.int()) * time.Microsecond,
			StatusCode: int(u.int()), Class: sender.Class(u.bytes()),
		}
		if u.uint() == 1 {
			a.Error, a.Snippet, a.NextAttemptAt = string(u.bytes()), u.bytes(), timeOf(u.int())
		}
		if event == of {
			if a.Snippet = bytes.Clone(a.Snippet); len(a.Snippet) == 0 {
				a.Snippet = nil
			}
			to = append(to, a)
		}
	}
	return to, u.err()
}

const selectAttempts = `SELECT attempts FROM surehook_attempts WHERE subscription = ? AND event BETWEEN ? AND ? ORDER BY event, number`

// attempts returns those of a delivery, oldest first.
func (w *work) attempts(key sender.DeliveryKey) (all []sender.Attempt, err error) {
	from := key.Event / attemptsTogether * attemptsTogether
	err = w.each(func(rows *sql.Rows) (bool, error) {
		var packed sql.RawBytes
		err := rows.Scan(&packed)
		if err == nil {
			all, err = unpackAttempts(all, packed, key.Event)
		}
		return true, err
	}, selectAttempts, key.Subscription, from, key.Event)
	slices.SortFunc(all, func(a, b sender.Attempt) int { return cmp.Compare(a.Number, b.Number) })
	return all, err
}
