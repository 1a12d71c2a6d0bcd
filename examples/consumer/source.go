package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
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
}

// subscriber has the server's fields of one subscriber.
type subscriber struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Attributes json.RawMessage `json:"attributes"`
	Version    int64           `json:"version"`
}

func newSource(base, token string) (*source, error) {
	if token == "" {
		return nil, errToken
	}
	return &source{base: strings.TrimSuffix(base, "/"), token: token, client: &http.Client{Timeout: 5 * time.Second}}, nil
}

// get reads JSON. Found is false for a 404 of the reference server: one of somebody else, as of
// a proxy before it, does not say that anything is gone.
func (s *source) get(ctx context.Context, path string, into any) (found bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	res, err := s.client.Do(req)
	if err != nil {
		return false, err
	}
	defer func() { _ = res.Body.Close() }()
	switch media := res.Header.Get("Content-Type"); {
	case res.StatusCode == http.StatusOK:
		return true, json.NewDecoder(res.Body).Decode(into)
	case res.StatusCode == http.StatusNotFound && media == "application/problem+json":
		return false, nil
	}
	return false, fmt.Errorf("GET %s was answered with %s", path, res.Status)
}

// fetch reads the state that an event only names. The server commits a change before it
// sends the event, so an object that it does not know is gone.
func (s *source) fetch(ctx context.Context, ev receiver.Event) (receiver.Snapshot[subscriber], error) {
	var now subscriber
	found, err := s.get(ctx, "/subscribers/"+url.PathEscape(ev.Object.ID), &now)
	return receiver.Snapshot[subscriber]{Version: now.Version, State: now, Gone: !found && err == nil}, err
}

func (s *source) operatorSecret(ctx context.Context) (string, error) {
	var shown struct {
		SigningSecret string `json:"signing_secret"`
	}
	found, err := s.get(ctx, "/subscribers/sub_operator/secret", &shown)
	if err == nil && !found {
		err = fmt.Errorf("only the operator is shown it: give -secret")
	}
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
