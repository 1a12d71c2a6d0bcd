package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/surehook/surehook/receiver"
)

// source is the reference server, as a client sees it.
type source struct {
	base, token string
	client      *http.Client
	readsAll    bool // the token is the operator's, not a subscriber's
}

// subscriber has the server's fields of one subscriber.
type subscriber struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Attributes json.RawMessage `json:"attributes"`
	Version    int64           `json:"version"`
}

// newSource tries the server and the token before the first event: with a wrong one, each would
// fail.
func newSource(ctx context.Context, base, token string) (*source, error) {
	if token == "" {
		return nil, errors.New("there is no token: set SUREHOOK_TOKEN, with which the current state is read")
	}
	s := &source{base: strings.TrimSuffix(base, "/"), token: token, client: &http.Client{Timeout: 5 * time.Second}}
	var list struct {
		Data []json.RawMessage `json:"data"`
	}
	err := s.get(ctx, "/subscribers?limit=1", &list)
	no, refused := errors.AsType[*refusal](err)
	switch {
	case err == nil && list.Data == nil:
		err = fmt.Errorf("%s has no list of subscribers: it is no reference server", s.base)
	case err == nil:
		s.readsAll = true
	case refused && no.status == http.StatusForbidden && no.detail != "": // it reads its own state alone
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("trying the server and the token: %w", err)
	}
	return s, nil
}

// refusal is an answer other than 200.
type refusal struct {
	path   string
	status int
	detail string // what the reference server says of it; empty for somebody else's, as a proxy's
}

// Error implements error.
func (r *refusal) Error() string {
	text := fmt.Sprintf("GET %s was answered with %d %s", r.path, r.status, http.StatusText(r.status))
	if r.detail != "" {
		text += ": " + r.detail
	}
	return text
}

// get reads JSON, or returns a *refusal.
func (s *source) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode == http.StatusOK {
		return json.NewDecoder(res.Body).Decode(into)
	}
	var problem struct {
		Detail string `json:"detail"`
	}
	if res.Header.Get("Content-Type") == "application/problem+json" {
		_ = json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(&problem) // without it, the status has to do
	}
	return &refusal{path, res.StatusCode, problem.Detail}
}

// fetch reads the state that an event only names. The server never gives an id twice, so an
// object of which an event says that it is deleted needs no look. The server commits a change
// before it sends the event, so one that it does not know is gone, too. That is only so if it
// is the subscriber that it does not know, and not the path, and if the token reads all: to a
// subscriber's, another one looks as if it were gone.
func (s *source) fetch(ctx context.Context, ev receiver.Event) (receiver.Snapshot[subscriber], error) {
	if ev.Type == "subscriber.deleted" {
		return receiver.Snapshot[subscriber]{Gone: true}, nil
	}
	var now subscriber
	err := s.get(ctx, "/subscribers/"+url.PathEscape(ev.Object.ID), &now)
	if no, refused := errors.AsType[*refusal](err); refused && s.readsAll && no.status == http.StatusNotFound && no.detail == "there is no such subscriber" {
		return receiver.Snapshot[subscriber]{Gone: true}, nil
	}
	return receiver.Snapshot[subscriber]{Version: now.Version, State: now}, err
}

func (s *source) operatorSecret(ctx context.Context) (string, error) {
	if !s.readsAll {
		return "", errors.New("the token is a subscriber's: set SUREHOOK_SECRET to its secret")
	}
	var shown struct {
		SigningSecret string `json:"signing_secret"`
	}
	err := s.get(ctx, "/subscribers/sub_operator/secret", &shown)
	return shown.SigningSecret, err
}

// store keeps the copy, in the transaction of the event's marker and version.
func store(ctx context.Context, tx *sql.Tx, ev receiver.Event, now receiver.Snapshot[subscriber]) error {
	if now.Gone {
		_, err := tx.ExecContext(ctx, "DELETE FROM copies WHERE id = ?", ev.Object.ID)
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO copies VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT DO UPDATE SET name = ?2, attributes = ?3, version = ?4`, now.State.ID, now.State.Name, string(now.State.Attributes), now.State.Version)
	return err
}
