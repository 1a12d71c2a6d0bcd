package receiver

import (
	"fmt"
	"sync"
	"time"

	"github.com/surehook/surehook/signing"
)

// diagnoser is an optional interface of a Verifier.
type diagnoser interface {
	Diagnose(m signing.Message) []string
}

var (
	_ diagnoser = (*signing.Verifier)(nil)
	_ diagnoser = (*Secrets)(nil)
)

// A few diagnoses are made in a row, and then one at intervals. One costs as much as
// dozens of verifications, and a forger of signatures must not be able to spend that. A
// mistake in the set-up is found all the same, because every request has it.
const (
	diagnosesAtOnce = 5
	diagnosisEvery  = 10 * time.Second
)

type diagnoses struct {
	mu        sync.Mutex
	remaining int
	at        time.Time // when remaining had this value
}

func (d *diagnoses) allow(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at.IsZero() || now.Before(d.at) {
		d.remaining, d.at = diagnosesAtOnce, now
	}
	if more := int(now.Sub(d.at) / diagnosisEvery); more > 0 {
		d.remaining = min(diagnosesAtOnce, d.remaining+more)
		d.at = now
	}
	if d.remaining == 0 {
		return false
	}
	d.remaining--
	return true
}

// diagnose adds to a failure what is probably wrong. The failure's status stays.
func (r *Receiver[Tx]) diagnose(failure *Error, in incoming, body []byte) *Error {
	switch failure.Reason {
	case ReasonHeader, ReasonWindow, ReasonSignature:
	default:
		return failure
	}
	m := signing.Message{Method: in.method, URL: in.url, Header: in.header, Body: body}
	if failure.Reason == ReasonSignature { // which costs next to nothing
		_ = contain(func() error {
			failure.Tried = triedKeys(r.verifier, m)
			return nil
		})
	}
	d, ok := r.verifier.(diagnoser)
	if !ok || r.cfg.NoDiagnosis || !r.diagnoses.allow(r.cfg.Now()) {
		return failure
	}
	if in.conn != nil && in.size > 0 && int64(len(body)) != in.size && failure.Reason == ReasonSignature { // a server passes on what is declared, or an error; an adapter that does not know leaves 0
		failure.Diagnosis = []string{fmt.Sprintf("the request declares a body of %d bytes, and %d came here: something in front of the receiver reads or changes it", in.size, len(body))}
		return failure
	}
	_ = contain(func() error {
		failure.Diagnosis = d.Diagnose(m)
		return nil
	})
	return failure
}

// triedKeys looks nothing up.
func triedKeys(v Verifier, m signing.Message) []signing.TriedKey {
	switch v := v.(type) {
	case *Secrets:
		if holder, _ := v.memory.get(v.nameOf(m), v.cfg.Verifier.Now()); holder != nil {
			return holder.verifier.Tried()
		}
	case interface{ Tried() []signing.TriedKey }: // a signing.Verifier, or one that embeds it
		return v.Tried()
	}
	return nil
}

// Diagnose is [signing.Verifier.Diagnose] with the keys that the request's name has,
// if they are remembered: it looks nothing up.
func (s *Secrets) Diagnose(m signing.Message) []string {
	name := s.nameOf(m)
	holder, _ := s.memory.get(name, s.cfg.Verifier.Now())
	if holder != nil {
		return holder.verifier.Diagnose(m)
	}
	if _, err := s.stranger.Verify(m); err != nil && reasonOf(err) == ReasonSignature {
		return []string{"nobody has a secret under the name that the request gives: the path or the header that has it may be another one than the sender was told"}
	}
	return s.stranger.Diagnose(m) // of the header or the clock, for which no key is needed
}
