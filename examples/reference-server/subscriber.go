package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surehook/surehook/sender"
)

// Subscriber is a customer of the service, and the object of the example's events.
type Subscriber struct {
	ID         string     `json:"id" example:"sub_ada" doc:"The subscriber's id."`
	Name       string     `json:"name" doc:"What people call it."`
	Attributes Attributes `json:"attributes" doc:"A JSON object of the service's own."`
	Version    int64      `json:"version" doc:"One higher with every change; that of its last event."`
	CreatedAt  time.Time  `json:"created_at" doc:"When it was created."`
	UpdatedAt  time.Time  `json:"updated_at" doc:"When it was last changed."`
}

// Attributes are a subscriber's own, and kept as they are given.
type Attributes map[string]json.RawMessage

// NewSubscriber asks for a subscriber.
type NewSubscriber struct {
	ID         string     `json:"id,omitempty" pattern:"^sub_[A-Za-z0-9_-]{1,64}$" patternDescription:"sub_ and 1 to 64 letters, digits, hyphens and underscores" doc:"Made up if it is left out. One that is or was in use is refused."`
	Name       string     `json:"name" minLength:"1" maxLength:"255" doc:"What people call it."`
	Attributes Attributes `json:"attributes,omitempty" doc:"A JSON object of the service's own."`
}

// CreatedSubscriber is the only answer that shows the two secrets.
type CreatedSubscriber struct {
	Subscriber
	Token         string `json:"token" doc:"The subscriber's bearer token. It is shown here alone."`
	SigningSecret string `json:"signing_secret" doc:"What its deliveries are signed with. It is shown here alone."`
}

// SubscriberChange lists the fields to change. A field that is left out stays as it is.
type SubscriberChange struct {
	Name       *string    `json:"name,omitempty" minLength:"1" maxLength:"255" doc:"What people call it."`
	Attributes Attributes `json:"attributes,omitzero" doc:"Replaces the attributes as a whole."` // an empty object is not the same as none
}

// Conditions are what must hold for a subscriber to be changed or deleted.
type Conditions struct {
	IfMatch     string `header:"If-Match" doc:"ETags: it is done only if the present one is among them."`
	IfNoneMatch string `header:"If-None-Match" json:",omitempty" doc:"ETags: it is done only if the present one is not among them."`
}

type (
	createSubscriber struct {
		Keyed
		Body NewSubscriber
	}
	createdSubscriber struct {
		ETag     string `header:"ETag"`
		Location string `header:"Location"`
		Body     CreatedSubscriber
	}
	SubscriberPath struct {
		ID string `path:"id" doc:"The subscriber's id."`
	}
	readSubscriber struct {
		SubscriberPath
		IfMatch     string `header:"If-Match" doc:"ETags: if the present one is not among them, the answer is 412."`
		IfNoneMatch string `header:"If-None-Match" doc:"ETags: if the present one is among them, the answer is 304."`
	}
	changeSubscriber struct {
		SubscriberPath
		Keyed
		Conditions
		Body SubscriberChange
	}
	deleteSubscriber struct {
		SubscriberPath
		Keyed
		Conditions
	}
	subscriberAnswer struct {
		Status int
		ETag   string `header:"ETag"`
		Body   *Subscriber
	}
)

func (s *server) subscriberOperations() {
	handle(s, operation{method: http.MethodPost, path: "/subscribers", id: "create-subscriber", summary: "Create a subscriber", tag: "Subscribers", status: http.StatusCreated, who: operatorOnly, shows: true, errors: []int{http.StatusConflict}}, s.createSubscriber)
	handle(s, operation{method: http.MethodGet, path: "/subscribers/{id}", id: "get-subscriber", summary: "Read a subscriber's current state", tag: "Subscribers", errors: []int{http.StatusPreconditionFailed}}, s.getSubscriber)
	s.api.OpenAPI().Paths["/subscribers/{id}"].Get.Responses["304"] = &huma.Response{Description: http.StatusText(http.StatusNotModified)}
	handle(s, operation{method: http.MethodPatch, path: "/subscribers/{id}", id: "change-subscriber", summary: "Change a subscriber", tag: "Subscribers", who: operatorOnly, errors: []int{http.StatusConflict, http.StatusPreconditionFailed}}, s.changeSubscriber)
	handle(s, operation{method: http.MethodDelete, path: "/subscribers/{id}", id: "delete-subscriber", summary: "Delete a subscriber", tag: "Subscribers", status: http.StatusNoContent, who: operatorOnly, errors: []int{http.StatusConflict, http.StatusPreconditionFailed}}, s.deleteSubscriber)
}

func (s *server) createSubscriber(ctx context.Context, c caller, in *createSubscriber) (*createdSubscriber, error) {
	body, err := once(ctx, s.answers, c, in.Key, in.Body, func(tx *sql.Tx) (CreatedSubscriber, error) {
		token := newToken()
		sub, secret, err := s.insertSubscriber(ctx, tx, in.Body, hashToken(token))
		return CreatedSubscriber{Subscriber: sub, Token: token, SigningSecret: secret}, err
	})
	if err != nil {
		if errors.Is(err, sender.ErrExists) {
			return nil, problem(http.StatusConflict, fmt.Sprintf("the id %q is or was in use: choose another, or leave it out", in.Body.ID), Detail{Location: "body.id", Message: "it is or was in use"})
		}
		return nil, err
	}
	return &createdSubscriber{ETag: etag(body.Version), Location: "/subscribers/" + body.ID, Body: body}, nil
}

// insertSubscriber stores a subscriber with the library and with the service, and
// publishes its event, in the caller's transaction. An empty hash: it has no token.
func (s *service) insertSubscriber(ctx context.Context, tx *sql.Tx, n NewSubscriber, tokenHash string) (Subscriber, string, error) {
	if err := textOnly("body.name", n.Name); err != nil {
		return Subscriber{}, "", err
	}
	registered, secret, err := s.registry.CreateSubscriberTx(ctx, tx, sender.NewSubscriber{ID: n.ID})
	if err != nil {
		return Subscriber{}, "", err
	}
	sub := Subscriber{ID: registered.ID, Name: n.Name, Attributes: n.Attributes, Version: 1, CreatedAt: registered.CreatedAt, UpdatedAt: registered.CreatedAt}
	if err := s.writeSubscriber(ctx, tx, &sub, tokenHash); err != nil {
		return Subscriber{}, "", err
	}
	return sub, secret.Reveal(), s.publishSubscriber(ctx, tx, "subscriber.created", sub.ID, sub.Version)
}

func (s *service) writeSubscriber(ctx context.Context, tx *sql.Tx, sub *Subscriber, tokenHash string) error {
	if sub.Attributes == nil {
		sub.Attributes = Attributes{}
	}
	attributes, err := asJSON(sub.Attributes)
	if err != nil {
		return err
	}
	_, err = s.db.exec(ctx, tx, "INSERT INTO server_subscribers VALUES ($1, $2, $3, $4, $5, $6, $7, NULL)",
		sub.ID, sub.Name, string(attributes), sub.Version, sql.NullString{String: tokenHash, Valid: tokenHash != ""}, sub.CreatedAt.UnixMicro(), sub.UpdatedAt.UnixMicro())
	return err
}

// publishSubscriber reports a change in the transaction that makes it. The event is thin:
// its receiver reads the present state.
func (s *service) publishSubscriber(ctx context.Context, tx *sql.Tx, eventType, id string, version int64) error {
	_, err := s.publisher.PublishTx(ctx, tx, sender.Event{
		Type: eventType, Object: sender.Object{Type: "subscriber", ID: id}, Version: version, Subscriber: id,
	})
	return err
}

// subscriber reads one that is not deleted. With a nil tx it reads what is committed.
func (s *service) subscriber(ctx context.Context, tx *sql.Tx, id string) (Subscriber, error) {
	sub := Subscriber{ID: id}
	var attributes string
	var created, updated int64
	err := s.db.row(ctx, tx, "SELECT name, attributes, version, created_at, updated_at FROM server_subscribers WHERE id = $1 AND deleted_at IS NULL", id).
		Scan(&sub.Name, &attributes, &sub.Version, &created, &updated)
	if errors.Is(err, sql.ErrNoRows) {
		return sub, notFound("subscriber")
	}
	if err != nil {
		return sub, err
	}
	sub.CreatedAt, sub.UpdatedAt = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
	return sub, json.Unmarshal([]byte(attributes), &sub.Attributes)
}

func (s *server) getSubscriber(ctx context.Context, _ caller, in *readSubscriber) (*subscriberAnswer, error) {
	sub, err := s.subscriber(ctx, nil, in.ID)
	if err != nil {
		return nil, err
	}
	if err := unchanged(Conditions{IfMatch: in.IfMatch}, sub.Version); err != nil {
		return nil, err
	}
	if matchesWeakly(in.IfNoneMatch, sub.Version) {
		return &subscriberAnswer{Status: http.StatusNotModified, ETag: etag(sub.Version)}, nil
	}
	return &subscriberAnswer{Status: http.StatusOK, ETag: etag(sub.Version), Body: &sub}, nil
}

func (s *server) changeSubscriber(ctx context.Context, c caller, in *changeSubscriber) (*subscriberAnswer, error) {
	asked := struct {
		Conditions
		SubscriberChange
	}{in.Conditions, in.Body}
	sub, err := once(ctx, s.answers, c, in.Key, asked, func(tx *sql.Tx) (Subscriber, error) {
		return s.updateSubscriber(ctx, tx, in.ID, in.Conditions, in.Body)
	})
	if err != nil {
		return nil, err
	}
	return &subscriberAnswer{Status: http.StatusOK, ETag: etag(sub.Version), Body: &sub}, nil
}

// updateSubscriber changes a subscriber and publishes its event, in the caller's
// transaction. The new version is taken first: it locks the row, so that what is
// read next is what is replaced.
func (s *service) updateSubscriber(ctx context.Context, tx *sql.Tx, id string, only Conditions, change SubscriberChange) (Subscriber, error) {
	if _, err := s.db.exec(ctx, tx, "UPDATE server_subscribers SET version = version + 1 WHERE id = $1 AND deleted_at IS NULL", id); err != nil {
		return Subscriber{}, err
	}
	sub, err := s.subscriber(ctx, tx, id)
	if err != nil {
		return sub, err
	}
	if err := unchanged(only, sub.Version-1); err != nil {
		return sub, err
	}
	if change.Name != nil {
		if err := textOnly("body.name", *change.Name); err != nil {
			return sub, err
		}
		sub.Name = *change.Name
	}
	if change.Attributes != nil {
		sub.Attributes = change.Attributes
	}
	attributes, err := asJSON(sub.Attributes)
	if err != nil {
		return sub, err
	}
	sub.UpdatedAt = time.Now().UTC().Truncate(time.Microsecond)
	if _, err := s.db.exec(ctx, tx, "UPDATE server_subscribers SET name = $1, attributes = $2, updated_at = $3 WHERE id = $4",
		sub.Name, string(attributes), sub.UpdatedAt.UnixMicro(), id); err != nil {
		return sub, err
	}
	return sub, s.publishSubscriber(ctx, tx, "subscriber.updated", id, sub.Version)
}

func (s *server) deleteSubscriber(ctx context.Context, c caller, in *deleteSubscriber) (*struct{}, error) {
	if in.ID == sender.Operator {
		return nil, problem(http.StatusConflict, "the operator is built in: it cannot be deleted")
	}
	_, err := once(ctx, s.answers, c, in.Key, in.Conditions, func(tx *sql.Tx) (struct{}, error) {
		return struct{}{}, s.removeSubscriber(ctx, tx, in.ID, in.Conditions)
	})
	return nil, err
}

// removeSubscriber deletes a subscriber and publishes its event, in the caller's transaction.
func (s *service) removeSubscriber(ctx context.Context, tx *sql.Tx, id string, only Conditions) error {
	if _, err := s.db.exec(ctx, tx, "UPDATE server_subscribers SET version = version + 1 WHERE id = $1 AND deleted_at IS NULL", id); err != nil {
		return err
	}
	sub, err := s.subscriber(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := unchanged(only, sub.Version-1); err != nil {
		return err
	}
	now := time.Now().UnixMicro()
	if _, err := s.db.exec(ctx, tx, "UPDATE server_subscribers SET name = '', attributes = '{}', token_hash = NULL, updated_at = $1, deleted_at = $1 WHERE id = $2", now, id); err != nil {
		return err
	}
	// The event before the deletion: its own subscriptions still get it. The deletion
	// last: they do not get what others commit between the call and the commit.
	if err := s.publishSubscriber(ctx, tx, "subscriber.deleted", id, sub.Version); err != nil {
		return err
	}
	return s.registry.DeleteSubscriberTx(ctx, tx, id)
}

// textOnly refuses what PostgreSQL cannot store as text.
func textOnly(location, value string) error {
	if !text(value) {
		return invalid(location, "it must not hold a NUL character")
	}
	return nil
}

// seedOperator makes the operator a subscriber, with a secret and no token in the
// database, at the first start.
func (s *service) seedOperator(ctx context.Context) error {
	err := s.db.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := s.db.sender.SubscriberTx(ctx, tx, sender.Operator); !errors.Is(err, sender.ErrNotFound) {
			return err
		}
		registered, _, err := s.registry.CreateSubscriberTx(ctx, tx, sender.NewSubscriber{ID: sender.Operator})
		if err != nil {
			return err
		}
		return s.writeSubscriber(ctx, tx, &Subscriber{ID: sender.Operator, Name: "Operator", Version: 1, CreatedAt: registered.CreatedAt, UpdatedAt: registered.CreatedAt}, "")
	})
	if errors.Is(err, sender.ErrExists) { // another process was first
		return nil
	}
	return err
}

// etag is made from the version, which changes with every change (RFC 9110, section
// 8.8.3).
func etag(version int64) string { return fmt.Sprintf("%q", fmt.Sprint(version)) }

// matches tells whether a list of entity tags names a version.
func matches(list string, version int64) bool {
	for tag := range strings.SplitSeq(list, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || tag == etag(version) {
			return true
		}
	}
	return false
}

// matchesWeakly also takes weak tags (RFC 9110, section 13.1.2): compression on the way makes
// them weak.
func matchesWeakly(list string, version int64) bool {
	return matches(strings.ReplaceAll(list, "W/", ""), version)
}

// unchanged is nil if the conditions hold for the present version.
func unchanged(only Conditions, version int64) error {
	switch {
	case only.IfMatch != "" && !matches(only.IfMatch, version):
		return problem(http.StatusPreconditionFailed, fmt.Sprintf("it was changed meanwhile: its ETag is %s; read it again", etag(version)),
			Detail{Location: "header.If-Match", Message: "it does not name the present ETag"})
	case matchesWeakly(only.IfNoneMatch, version):
		return problem(http.StatusPreconditionFailed, fmt.Sprintf("it is there, and its ETag is %s", etag(version)),
			Detail{Location: "header.If-None-Match", Message: "it names the present ETag"})
	}
	return nil
}
