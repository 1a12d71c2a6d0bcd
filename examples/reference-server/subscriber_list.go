package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

type listSubscribers struct {
	Page
	Name string `query:"name" maxLength:"255" doc:"Those whose names begin with it, letter for letter. A page looks at 2,000 subscribers, and has those of them."`
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
		if after.created, err = strconv.ParseInt(created, 10, 64); err != nil || !text(id) {
			return nil, invalid("query.cursor", notOfAList)
		}
		after.id = id
	}
	page, last, err := s.subscribers(ctx, in.Name, after, in.Limit)
	if err != nil {
		return nil, err
	}
	next := ""
	if last != nil {
		next = last.String()
	}
	return listOf("subscribers", page, next, func(sub Subscriber) Subscriber { return sub }), nil
}

// maxSubscribersLooked bounds how many subscribers a page looks at that shows those of a name.
const maxSubscribersLooked = 2000

// maxSubscribersBytes is from how many bytes of names and attributes on a page has no more
// subscribers: the attributes of one can have a megabyte.
const maxSubscribersBytes = 4 << 20

// subscribers are those behind a cursor that are not deleted and whose names begin with one.
// next is where the page after it begins; nil: there is none.
func (s *service) subscribers(ctx context.Context, name string, after subscriberCursor, limit int) (page []Subscriber, next *subscriberCursor, err error) {
	found, next, err := s.subscribersNamed(ctx, name, after, limit)
	if err != nil {
		return nil, nil, err
	}
	size := 0
	for i, at := range found {
		if size >= maxSubscribersBytes {
			return page, &found[i-1], nil
		}
		sub, err := s.subscriber(ctx, nil, at.id)
		if p := (*Problem)(nil); errors.As(err, &p) && p.Status == http.StatusNotFound {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return nil, nil, err
		}
		page = append(page, sub)
		size += sub.size()
	}
	return page, next, nil
}

// subscribersNamed are the places of a page's subscribers in the list, without what they hold.
func (s *service) subscribersNamed(ctx context.Context, name string, after subscriberCursor, limit int) (found []subscriberCursor, next *subscriberCursor, err error) {
	most := limit + 1
	if name != "" {
		most = maxSubscribersLooked
	}
	rows, err := s.db.sql.QueryContext(ctx, s.db.statement(`SELECT id, name, created_at FROM server_subscribers
		WHERE deleted_at IS NULL AND (created_at, id) < ($1, $2) ORDER BY created_at DESC, id DESC LIMIT $3`), after.created, after.id, most)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	looked := 0
	for ; rows.Next(); looked++ {
		var at subscriberCursor
		var called string
		if err := rows.Scan(&at.id, &called, &at.created); err != nil {
			return nil, nil, err
		}
		if strings.HasPrefix(called, name) {
			if len(found) == limit {
				return found, &after, rows.Err()
			}
			found = append(found, at)
		}
		after = at
	}
	if looked == most {
		next = &after
	}
	return found, next, rows.Err()
}

// size is how many bytes a subscriber has, as far as callers choose.
func (sub *Subscriber) size() int {
	n := len(sub.Name)
	for name, value := range sub.Attributes {
		n += len(name) + len(value)
	}
	return n
}
