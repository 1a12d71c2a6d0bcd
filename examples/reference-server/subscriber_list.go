package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

type listSubscribers struct {
	Page
	Name string `query:"name" maxLength:"255" doc:"Those whose names begin with it, letter for letter."`
}

func (s *server) subscriberListOperations() {
	handle(s, operation{method: http.MethodGet, path: "/subscribers", id: "list-subscribers", summary: "List subscribers, newest first", tag: "Subscribers", who: operatorOnly}, s.listSubscribers)
}

// subscriberCursor is where a page of subscribers ends.
type subscriberCursor struct {
	created int64
	id      string
}

func (c subscriberCursor) String() string { return fmt.Sprintf("%d.%s", c.created, c.id) }

func (s *server) listSubscribers(ctx context.Context, _ caller, in *listSubscribers) (*answer[List[Subscriber]], error) {
	raw, err := in.cursor("subscribers")
	if err != nil {
		return nil, err
	}
	after := subscriberCursor{created: 1<<63 - 1}
	if raw != "" {
		created, id, _ := strings.Cut(raw, ".")
		if after.created, err = strconv.ParseInt(created, 10, 64); err != nil {
			return nil, invalid("query.cursor", "it must be the next_cursor of a page of the same list")
		}
		after.id = id
	}
	page, err := s.subscribers(ctx, in.Name, after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	next := ""
	if len(page) > in.Limit {
		page = page[:in.Limit]
		last := page[in.Limit-1]
		next = subscriberCursor{last.CreatedAt.UnixMicro(), last.ID}.String()
	}
	return listOf("subscribers", page, next, func(sub Subscriber) Subscriber { return sub }), nil
}

// subscribers are those behind a cursor that are not deleted.
func (s *service) subscribers(ctx context.Context, name string, after subscriberCursor, limit int) (page []Subscriber, err error) {
	rows, err := s.db.sql.QueryContext(ctx, s.db.statement(`SELECT id, name, attributes, version, created_at, updated_at FROM server_subscribers
		WHERE deleted_at IS NULL AND (created_at, id) < ($1, $2) AND substr(name, 1, length($3)) = $3 ORDER BY created_at DESC, id DESC LIMIT $4`),
		after.created, after.id, name, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var sub Subscriber
		var attributes string
		var created, updated int64
		if err := rows.Scan(&sub.ID, &sub.Name, &attributes, &sub.Version, &created, &updated); err != nil {
			return nil, err
		}
		sub.CreatedAt, sub.UpdatedAt = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
		if err := json.Unmarshal([]byte(attributes), &sub.Attributes); err != nil {
			return nil, err
		}
		page = append(page, sub)
	}
	return page, rows.Err()
}
