package main

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/surehook/surehook/sender"
)

// checkKeys makes sure, before anything is served, that all that is sealed can be opened.
func (s *service) checkKeys(ctx context.Context) error {
	err := s.registry.CheckKeys(ctx)
	if !errors.Is(err, sender.ErrSealed) {
		return err
	}
	names, listErr := s.db.sender.SealingKeys(ctx)
	if listErr != nil {
		return errors.Join(err, listErr)
	}
	given := map[string]bool{"": true}
	for _, k := range s.keys {
		given[k.ID] = true
	}
	var missing []string
	for _, name := range names {
		if id, _, _ := strings.Cut(name, "|"); !given[id] {
			missing = append(missing, id)
		}
	}
	return fmt.Errorf("secrets in the database cannot be opened: they were sealed with a key that was not given (fingerprint %s). "+
		"Give it behind the newest one, -secret-key NEW,OLD, or on a line of its own in the file of the keys: what it sealed is then sealed with the newest while the server runs",
		strings.Join(missing, ", "))
}

// rewrap seals with the newest key what an older one has sealed. Another process may go
// on to do so, so it is called again and again.
func (s *service) rewrap(ctx context.Context) error {
	if len(s.keys) < 2 {
		return nil
	}
	secrets, err := s.registry.Rewrap(ctx)
	if err != nil {
		return err
	}
	answers, err := s.answers.rewrap(ctx)
	if err != nil {
		return err
	}
	switch {
	case secrets+answers > 0:
		s.log.Info("sealed anew with the newest key", "key", s.keys[0].ID, "secrets", secrets, "answers", answers)
		s.rewrapped = false
	case s.rewrapped:
		return nil
	}
	s.rewrapped = true
	s.log.Info("nothing is sealed with an older key any more: once every process has the same newest key, the older ones can be left out", "key", s.keys[0].ID)
	return nil
}

const answersAtOnce = 100

// rewrap seals the stored answers anew, in small transactions.
func (a *answers) rewrap(ctx context.Context) (done int, err error) {
	for last := (storedAnswer{}); ; {
		var some []storedAnswer
		err := a.db.inTx(ctx, func(tx *sql.Tx) (err error) {
			if some, err = a.others(ctx, tx, last); err != nil {
				return err
			}
			for _, one := range some {
				if err := a.renew(ctx, tx, one); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || len(some) == 0 {
			return done, err
		}
		done, last = done+len(some), some[len(some)-1]
	}
}

// storedAnswer is a row of the table of answers.
type storedAnswer struct {
	caller
	key, answer string
}

// others are the next answers that are not sealed with the newest key.
func (a *answers) others(ctx context.Context, tx *sql.Tx, last storedAnswer) (some []storedAnswer, err error) {
	rows, err := tx.QueryContext(ctx, a.db.statement(`SELECT caller, path, key, answer FROM server_answers
		WHERE answer <> '' AND answer NOT LIKE $1 AND (caller, path, key) > ($2, $3, $4) ORDER BY caller, path, key LIMIT $5`),
		a.seals[0].id+":%", last.id, last.path, last.key, answersAtOnce)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var one storedAnswer
		if err := rows.Scan(&one.id, &one.path, &one.key, &one.answer); err != nil {
			return nil, err
		}
		some = append(some, one)
	}
	return some, rows.Err()
}

// renew seals an answer anew. One that no key opens stays: it is removed in a day.
func (a *answers) renew(ctx context.Context, tx *sql.Tx, one storedAnswer) error {
	text, err := a.open(one.answer, bound(one.caller, one.key))
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	_, err = a.db.exec(ctx, tx, "UPDATE server_answers SET answer = $1 WHERE caller = $2 AND path = $3 AND key = $4",
		a.sealed(text, bound(one.caller, one.key)), one.id, one.path, one.key)
	return err
}

// sealed is a text under the newest key, whose fingerprint stands before it.
func (a *answers) sealed(text, bound []byte) string {
	return a.seals[0].id + ":" + base64.StdEncoding.EncodeToString(a.seals[0].aead.Seal(nil, nil, text, bound))
}

// open opens what any of the keys has sealed.
func (a *answers) open(answer string, bound []byte) ([]byte, error) {
	id, text, named := strings.Cut(answer, ":")
	if !named {
		text = answer // of before keys were named
	}
	sealed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	for _, s := range a.seals {
		if named && id != s.id {
			continue
		}
		if plain, err := s.aead.Open(nil, nil, sealed, bound); err == nil {
			return plain, nil
		}
	}
	return nil, errors.New("a stored answer cannot be opened: it was sealed with another key")
}
