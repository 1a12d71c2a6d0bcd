package jobs

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/surehook/surehook/internal/ident"
)

// Submission is a job to be run.
type Submission struct {
	// Kind is the name of one that was given to New.
	Kind string

	// Input is a JSON value that the kind understands. Empty: null.
	Input json.RawMessage

	// Owner is the id of the subscriber that submits the job, and that may read and
	// cancel it. Empty: the job belongs to nobody, and can have no callback URL.
	Owner string

	// CallbackURL is where job.completed is to be posted, signed with the owner's
	// secret. Empty: nowhere.
	CallbackURL string

	// IdempotencyKey, up to 255 bytes, makes a second submission return the first
	// one's job, with Duplicate set, and change nothing. With another kind, input, owner
	// or callback URL it is refused with ErrIdempotencyKey. Inputs are compared byte by byte.
	// Nothing else of it is judged again: its kind may be unknown by now, or its callback URL
	// refused. The key is kept for as long as the job is. KeyScope, up to 128 bytes, keeps the
	// keys of different callers apart.
	IdempotencyKey string
	KeyScope       string
}

// Submitted is an accepted job.
type Submitted struct {
	Job
	// Duplicate: the idempotency key was known, and the job is the first one's.
	Duplicate bool
}

func (s *Submission) problems(maxInput int) (errs []error) {
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w submission: "+format, append([]any{ErrInvalid}, args...)...))
	}
	if len(s.Input) > maxInput {
		add("input has %d bytes: at most %d are allowed (Config.MaxInputBytes)", len(s.Input), maxInput)
	} else if len(s.Input) > 0 && (!json.Valid(s.Input) || !utf8.Valid(s.Input)) {
		add("input is not valid JSON in UTF-8")
	}
	if s.Owner != "" {
		if err := ident.EventID(s.Owner); err != nil {
			add("owner is not a subscriber's id: it has 1 to %d letters, digits, hyphens and underscores", ident.MaxEventID)
		}
	} else if s.CallbackURL != "" {
		add("a callback URL is given without an owner, whose secret would sign what is posted")
	}
	return append(errs, s.keyProblems()...)
}

// keyProblems are those of the idempotency key: without any, it can be looked for.
func (s *Submission) keyProblems() (errs []error) {
	for _, t := range []struct {
		name, text string
		most       int
	}{{"idempotency key", s.IdempotencyKey, maxIdempotencyKey}, {"key scope", s.KeyScope, ident.MaxScope}} {
		if t.text == "" {
			continue
		}
		if len(t.text) > t.most || ident.Storable("", t.text) != nil {
			errs = append(errs, fmt.Errorf("%w submission: %s: it must be at most %d bytes of UTF-8 without NUL", ErrInvalid, t.name, t.most))
		}
	}
	return errs
}

// hash covers the fields that all submissions under one idempotency key must have in
// common.
func (s *Submission) hash() (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, t := range []string{s.Kind, string(s.Input), s.Owner, s.CallbackURL} {
		fmt.Fprintf(h, "%d:%s", len(t), t)
	}
	h.Sum(sum[:0])
	return sum
}

// answered is the answer to a submission: a job that was stored, by an earlier submission under
// the same key if existed is set.
func (s *Submission) answered(stored Record, existed bool, err error) (Submitted, error) {
	if err != nil {
		return Submitted{}, err
	}
	if existed && stored.Hash != s.hash() {
		return Submitted{}, fmt.Errorf("%w: key %q in scope %q", ErrIdempotencyKey, s.IdempotencyKey, s.KeyScope)
	}
	return Submitted{Job: stored.Job, Duplicate: existed}, nil
}

// check reports all problems of a submission at once.
func (j *Jobs[Tx]) check(s *Submission) error {
	k := j.kinds[s.Kind]
	errs := s.problems(j.cfg.MaxInputBytes)
	switch {
	case k == nil:
		errs = append([]error{fmt.Errorf("%w %q", ErrKind, s.Kind)}, errs...)
	case len(errs) == 0 && k.Check != nil:
		if err := k.Check(s.Input); err != nil {
			errs = append(errs, fmt.Errorf("%w submission: input: %w", ErrInvalid, err))
		}
	}
	if s.CallbackURL != "" && j.cfg.Announcer == nil {
		errs = append(errs, fmt.Errorf("%w submission: callback URL: none can be taken here (Config.Announcer is nil)", ErrInvalid))
	}
	return errors.Join(errs...)
}
