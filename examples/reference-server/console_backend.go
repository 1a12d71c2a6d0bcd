package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/console"
)

// consoleBackend is what the console works on.
func (s *server) consoleBackend() console.Backend {
	return console.Backend{Registry: s.registry, History: s.history, Replays: s.replays, Customers: consoleCustomers{s.service}, Jobs: s.jobs}
}

// firstSteps are the calls with which a new server is tried.
func firstSteps(o options) console.FirstSteps {
	addr, err := reachable(o.addr)
	if err != nil {
		addr = o.addr // the server says what is wrong with it
	}
	to := ""
	if o.addressed {
		to = `, "subscriber_id": "sub_…"`
	}
	call := func(path, token, body string) string {
		return fmt.Sprintf("curl -X POST http://%s%s \\\n  -H \"Authorization: Bearer $%s\" \\\n  -H 'Content-Type: application/json' \\\n  -d '%s'", addr, path, token, body)
	}
	return console.FirstSteps{
		Customer: call("/subscribers", "OPERATOR_TOKEN", `{"name": "Ada & Sons"}`),
		Endpoint: call("/subscriptions", "CUSTOMER_TOKEN", `{"url": "https://customer.example/webhooks", "event_types": ["*"]}`),
		Event:    call("/events", "OPERATOR_TOKEN", `{"type": "invoice.paid", "object": {"type": "invoice", "id": "in_1"}, "data": {"amount": 100}`+to+`}`),
	}
}

// consoleCustomers are the server's subscribers, for the console.
type consoleCustomers struct{ *service }

func (c consoleCustomers) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return c.db.sql.QueryContext(ctx, c.db.statement(query), args...)
}

// NameOf implements console.Customers.
func (c consoleCustomers) NameOf(ctx context.Context, ids []string) (map[string]string, error) {
	names := map[string]string{}
	if len(ids) == 0 {
		return names, nil
	}
	args := make([]any, len(ids))
	marks := make([]string, len(ids))
	for i, id := range ids {
		args[i], marks[i] = id, fmt.Sprintf("$%d", i+1)
	}
	rows, err := c.query(ctx, "SELECT id, name FROM server_subscribers WHERE id IN ("+strings.Join(marks, ", ")+")", args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, name string
		if err := rows.Scan(&id, &name); err != nil {
			return nil, err
		}
		names[id] = name
	}
	return names, rows.Err()
}

// Customers implements console.Customers. The cursor is the id of the last one that was
// looked at.
func (c consoleCustomers) Customers(ctx context.Context, q console.CustomerQuery) (page []console.Customer, next string, err error) {
	limit := q.Limit + 1
	if q.Text != "" {
		limit = maxSubscribersLooked
	}
	rows, err := c.query(ctx, "SELECT id, name, created_at FROM server_subscribers WHERE deleted_at IS NULL AND id > $1 AND id <> $2 ORDER BY id LIMIT $3", q.Cursor, sender.Operator, limit)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = rows.Close() }()
	looked, last := 0, ""
	for rows.Next() {
		var one console.Customer
		var created int64
		if err := rows.Scan(&one.ID, &one.Name, &created); err != nil {
			return nil, "", err
		}
		if strings.Contains(strings.ToLower(one.Name+" "+one.ID), strings.ToLower(q.Text)) {
			if len(page) == q.Limit {
				return page, last, rows.Err()
			}
			one.CreatedAt = time.UnixMicro(created).UTC()
			page = append(page, one)
		}
		looked, last = looked+1, one.ID
	}
	if looked == limit {
		next = last
	}
	return page, next, rows.Err()
}

// Customer implements console.Customers.
func (c consoleCustomers) Customer(ctx context.Context, id string) (console.Customer, error) {
	sub, err := c.subscriber(ctx, nil, id)
	if p := (*Problem)(nil); errors.As(err, &p) && p.Status == http.StatusNotFound {
		return console.Customer{}, sender.ErrNotFound
	}
	if err != nil {
		return console.Customer{}, err
	}
	one := console.Customer{ID: sub.ID, Name: sub.Name, CreatedAt: sub.CreatedAt}
	for _, name := range slices.Sorted(maps.Keys(sub.Attributes)) {
		value := string(sub.Attributes[name])
		var text string
		if json.Unmarshal(sub.Attributes[name], &text) == nil {
			value = text
		}
		one.Attributes = append(one.Attributes, console.Attribute{Name: name, Value: value})
	}
	return one, nil
}
