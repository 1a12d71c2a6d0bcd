package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/signing"
)

// RotateSecret asks for a new signing secret.
type RotateSecret struct {
	OverlapSeconds   *integer `json:"overlap_seconds,omitempty" minimum:"0" maximum:"2592000" default:"86400" doc:"For how long the secrets before stay valid. 0 ends all of them at once, and is never refused."`
	SignAfterSeconds integer  `json:"sign_after_seconds,omitempty" minimum:"0" maximum:"2592000" default:"0" doc:"After how long the new secret signs in the place of the one before, less than overlap_seconds. Until then it is shown, and the one before signs. Webhook-Signature carries signatures of both all through the overlap; Webhook-Hmac-Sha256 has one signature, so that a receiver that verifies it alone must add the new secret before that time."`
}

// RotatedSecret is the answer.
type RotatedSecret struct {
	SigningSecret      string    `json:"signing_secret" doc:"It is shown here alone."`
	PreviousValidUntil time.Time `json:"previous_valid_until" doc:"When the last of the older secrets ends."`
	SignsFrom          time.Time `json:"signs_from" doc:"From then on Webhook-Hmac-Sha256 is made with it."`
}

// ShownSecret is the operator's own.
type ShownSecret struct {
	SigningSecret string `json:"signing_secret" doc:"The one that signs at present."`
}

// RotatedToken is a new bearer token.
type RotatedToken struct {
	Token string `json:"token" doc:"It is shown here alone; the one before has ended."`
}

type (
	rotateSecret struct {
		SubscriberPath
		Keyed
		Body *RotateSecret
	}
	keyedSubscriber struct {
		SubscriberPath
		Keyed
	}
	answer[B any] struct{ Body B }
)

func (s *server) secretOperations() {
	handle(s, operation{method: http.MethodGet, path: "/subscribers/sub_operator/secret", id: "get-operator-secret", summary: "Show the operator's signing secret", tag: "Secrets", who: operatorOnly, shows: true}, s.operatorSecret)
	handle(s, operation{method: http.MethodPost, path: "/subscribers/{id}/secret/rotate", id: "rotate-secret", summary: "Replace the signing secret, with an overlap", tag: "Secrets", shows: true, errors: []int{http.StatusConflict}}, s.rotateSecret)
	handle(s, operation{method: http.MethodPost, path: "/subscribers/{id}/secret/activate", id: "activate-secret", summary: "Sign with the new secret from now on", tag: "Secrets", status: http.StatusNoContent, errors: []int{http.StatusConflict}}, s.activateSecret)
	handle(s, operation{method: http.MethodPost, path: "/subscribers/{id}/secret/retire", id: "retire-secret", summary: "End the previous secret now", tag: "Secrets", status: http.StatusNoContent, errors: []int{http.StatusConflict}}, s.retireSecret)
	handle(s, operation{method: http.MethodPost, path: "/subscribers/{id}/token/rotate", id: "rotate-token", summary: "Replace the bearer token", tag: "Secrets", shows: true, errors: []int{http.StatusConflict}}, s.rotateToken)
}

func (s *server) operatorSecret(ctx context.Context, _ caller, _ *struct{}) (*answer[ShownSecret], error) {
	secret, err := s.registry.SigningSecret(ctx, sender.Operator)
	if err != nil {
		return nil, err
	}
	return &answer[ShownSecret]{ShownSecret{secret.Reveal()}}, nil
}

func (s *server) rotateSecret(ctx context.Context, c caller, in *rotateSecret) (*answer[RotatedSecret], error) {
	asked := rotation{Overlap: 24 * time.Hour}
	if in.Body != nil {
		asked.After = time.Duration(in.Body.SignAfterSeconds) * time.Second
		if in.Body.OverlapSeconds != nil {
			asked.Overlap = time.Duration(*in.Body.OverlapSeconds) * time.Second
		}
	}
	if asked.After > 0 && asked.After >= asked.Overlap {
		return nil, problem(http.StatusUnprocessableEntity, "the new secret must sign before the one before it ends",
			Detail{Location: "body.sign_after_seconds", Message: fmt.Sprintf("it is %d: it must be less than overlap_seconds, which is %d", in.Body.SignAfterSeconds, int64(asked.Overlap/time.Second))})
	}
	body, err := once(ctx, s.answers, c, in.Key, asked, func(tx *sql.Tx) (RotatedSecret, error) { return s.rotate(ctx, tx, in.ID, asked) })
	return &answer[RotatedSecret]{body}, ofSubscriber(err)
}

// rotation is what was asked for, with its defaults.
type rotation struct{ Overlap, After time.Duration }

func (s *server) rotate(ctx context.Context, tx *sql.Tx, subscriber string, asked rotation) (RotatedSecret, error) {
	now := time.Now().UTC().Truncate(time.Microsecond)
	if asked.Overlap == 0 { // in an emergency it must not matter how many are valid
		secret, err := s.registry.RevokeSecretTx(ctx, tx, subscriber, signing.Secret{})
		return RotatedSecret{secret.Reveal(), now, now}, err
	}
	given := sender.Rotation{Overlap: asked.Overlap}
	if asked.After > 0 {
		given.SignFrom = now.Add(asked.After)
	}
	secret, until, err := s.registry.RotateSecretTx(ctx, tx, subscriber, &given)
	return RotatedSecret{secret.Reveal(), until, now.Add(asked.After)}, err
}

func (s *server) activateSecret(ctx context.Context, c caller, in *keyedSubscriber) (*struct{}, error) {
	_, err := once(ctx, s.answers, c, in.Key, nil, func(tx *sql.Tx) (struct{}, error) {
		return struct{}{}, s.registry.ActivateSecretTx(ctx, tx, in.ID)
	})
	return nil, ofSubscriber(err)
}

func (s *server) retireSecret(ctx context.Context, c caller, in *keyedSubscriber) (*struct{}, error) {
	_, err := once(ctx, s.answers, c, in.Key, nil, func(tx *sql.Tx) (struct{}, error) {
		return struct{}{}, s.registry.RetireSecretTx(ctx, tx, in.ID)
	})
	return nil, ofSubscriber(err)
}

// ofSubscriber says what it is that there is not.
func ofSubscriber(err error) error {
	if errors.Is(err, sender.ErrNotFound) {
		return notFound("subscriber")
	}
	return err
}

func (s *server) rotateToken(ctx context.Context, c caller, in *keyedSubscriber) (*answer[RotatedToken], error) {
	if in.ID == sender.Operator {
		return nil, problem(http.StatusConflict, "the operator's token is what the program was started with: start it with another -operator-token")
	}
	body, err := once(ctx, s.answers, c, in.Key, nil, func(tx *sql.Tx) (RotatedToken, error) {
		token := newToken()
		n, err := s.db.exec(ctx, tx, "UPDATE server_subscribers SET token_hash = $1 WHERE id = $2 AND deleted_at IS NULL", hashToken(token), in.ID)
		if err == nil && n == 0 {
			err = notFound("subscriber")
		}
		return RotatedToken{token}, err
	})
	return &answer[RotatedToken]{body}, err
}
