package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/jobs"
)

// ImportSubscribers is the input of import_subscribers.
type ImportSubscribers struct {
	Subscribers []ImportedSubscriber `json:"subscribers" nullable:"false" doc:"In any number, as far as the body allows."`
}

// ImportedSubscriber is created, or updated if there is one of that id. One that
// cannot be is reported in the result, and does not keep the others from it.
type ImportedSubscriber struct {
	ID         *string    `json:"id,omitempty" doc:"That of one that is there updates it. Made up if it is left out."`
	Name       string     `json:"name,omitempty" doc:"Up to 255 characters."`
	Attributes Attributes `json:"attributes,omitempty" doc:"Replaces the attributes as a whole; without it they stay."`
}

// id is the id as it was given; empty if it was not.
func (i *ImportedSubscriber) id() string {
	if i.ID == nil {
		return ""
	}
	return *i.ID
}

// Imported is the result of import_subscribers.
type Imported struct {
	Created int           `json:"created" doc:"How many were created."`
	Updated int           `json:"updated" doc:"How many were updated."`
	Failed  int           `json:"failed" doc:"How many could not be."`
	Errors  []ImportError `json:"errors" nullable:"false" doc:"What was wrong with them: the first 1,000."` // the first maxImportErrors
}

// ImportError says which one failed, and why.
type ImportError struct {
	Index   int    `json:"index" doc:"Its place in the input, from 0."`
	ID      string `json:"id" doc:"As it was given; empty if it was not."`
	Message string `json:"message" doc:"What was wrong."`
}

const (
	importStep      = 50 // subscribers in a transaction
	maxImportErrors = 1000
	maxName         = 255 // characters
	shownID         = 80
	maxImportState  = 1 << 20 // bytes; maxImportErrors fit, even if each byte of their ids takes six in JSON
)

// importState is what an import goes on from.
type importState struct {
	Next int `json:"next"`
	Imported
}

// badRow is an entry that cannot be imported.
type badRow struct {
	index   int
	message string
	taken   bool // its id, by another transaction it may be
}

func (b *badRow) Error() string { return b.message }

// importSubscribers takes step after step: each commits the subscribers, their
// events, and how far it has come, together.
func (s *service) importSubscribers(ctx context.Context, run *jobs.Run[*sql.Tx]) (json.RawMessage, error) {
	in, err := inputOf[ImportSubscribers](run)
	if err != nil {
		return nil, err
	}
	state, err := stateOf[importState](run)
	if err != nil {
		return nil, err
	}
	end := 0   // of the step, if it is to be shorter
	seen := -1 // the entry whose id was found to be taken
	for state.Next < len(in.Subscribers) {
		if end <= state.Next {
			end = min(state.Next+importStep, len(in.Subscribers))
		}
		next, err := s.importRows(ctx, run, in.Subscribers, state, end)
		var bad *badRow
		switch {
		case errors.As(err, &bad) && bad.index > state.Next:
			end = bad.index // without it, and those behind it
			continue
		case errors.As(err, &bad) && bad.taken && seen != bad.index:
			// By one who was creating it when it was looked for: it is there to be
			// updated now.
			seen = bad.index
			continue
		case errors.As(err, &bad):
			row := in.Subscribers[bad.index]
			next, err = s.importFailed(ctx, run, len(in.Subscribers), state, bad, row.id())
		}
		if err != nil {
			return nil, err
		}
		state, end = next, 0
	}
	if state.Errors == nil {
		state.Errors = []ImportError{}
	}
	return json.Marshal(state.Imported)
}

func (s *service) importRows(ctx context.Context, run *jobs.Run[*sql.Tx], rows []ImportedSubscriber, from importState, end int) (next importState, err error) {
	err = run.InTx(ctx, func(tx *sql.Tx, step *jobs.Step) error {
		next = from
		next.Next = end
		for _, i := range byID(rows, from.Next, end) {
			created, err := s.importRow(ctx, tx, rows[i])
			var bad *badRow
			if errors.As(err, &bad) {
				bad.index = i
			}
			if err != nil {
				return err
			}
			if created {
				next.Created++
			} else {
				next.Updated++
			}
		}
		step.Progress(int64(next.Next), int64(len(rows)))
		return save(step, next)
	})
	return next, err
}

// byID are the places of rows in the order of the rows' ids. Two imports of the same subscribers
// that took them in different orders would wait for each other, again and again.
func byID(rows []ImportedSubscriber, from, end int) (places []int) {
	for i := from; i < end; i++ {
		places = append(places, i)
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(rows[a].id(), rows[b].id()) })
	return places
}

func (s *service) importFailed(ctx context.Context, run *jobs.Run[*sql.Tx], total int, from importState, bad *badRow, id string) (next importState, err error) {
	next = from
	next.Next++
	next.Failed++
	if len(next.Errors) < maxImportErrors {
		next.Errors = append(slices.Clip(next.Errors), ImportError{Index: bad.index, ID: id[:min(len(id), shownID)], Message: bad.message})
	}
	return next, run.InTx(ctx, func(_ *sql.Tx, step *jobs.Step) error {
		step.Progress(int64(next.Next), int64(total))
		return save(step, next)
	})
}

var subscriberIDs = regexp.MustCompile(`^sub_[A-Za-z0-9_-]{1,64}$`)

// importRow creates a subscriber, which has no token until it is given one, or
// updates it.
func (s *service) importRow(ctx context.Context, tx *sql.Tx, row ImportedSubscriber) (created bool, err error) {
	switch {
	case row.ID != nil && !subscriberIDs.MatchString(*row.ID):
		return false, &badRow{message: "id: it must be sub_ and 1 to 64 letters, digits, hyphens and underscores"}
	case row.Name == "":
		return false, &badRow{message: "name: it is required"}
	case utf8.RuneCountInString(row.Name) > maxName || !text(row.Name):
		return false, &badRow{message: "name: it must have at most 255 characters, none of them NUL"}
	}
	if row.ID != nil {
		_, err := s.updateSubscriber(ctx, tx, *row.ID, Conditions{}, SubscriberChange{Name: &row.Name, Attributes: row.Attributes})
		var p *Problem
		if !errors.As(err, &p) { // nil, or the database's
			return false, err
		}
	}
	_, _, err = s.insertSubscriber(ctx, tx, NewSubscriber{ID: row.id(), Name: row.Name, Attributes: row.Attributes}, "")
	if errors.Is(err, sender.ErrExists) {
		return false, &badRow{message: "id: it was in use before, and is never in use again", taken: true}
	}
	return true, err
}
