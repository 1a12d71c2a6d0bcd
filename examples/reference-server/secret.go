package main

import (
	"context"
	"database/sql"
	"net/http"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/signing"
)

// RotateSecret asks for a new signing secret.
type RotateSecret struct {
	OverlapSeconds *int64 `json:"overlap_seconds,omitempty" minimum:"0" maximum:"2592000" default:"86400" doc:"For how long the secrets before stay valid. 0 ends all of them at once, and is never refused."`
}

// RotatedSecret is the answer.
type RotatedSecret struct {
	SigningSecret      string    `json:"signing_secret" doc:"It is shown here alone."`
	PreviousValidUntil time.Time `json:"previous_valid_until"`
}

// ShownSecret is the operator's own.
type ShownSecret struct {
	SigningSecret string `json:"signing_secret"`
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
	rotateToken struct {
		SubscriberPath
		Keyed
	}
	answer[B any] struct{ Body B }
)

func (s *server) secretOperations() {
	handle(s, operation{method: http.MethodGet, path: "/subscribers/sub_operator/secret", id: "get-operator-secret", summary: "Show the operator's signing secret", tag: "Secrets", who: operatorOnly}, s.operatorSecret)
	handle(s, operation{method: http.MethodPost, path: "/subscribers/{id}/secret/rotate", id: "rotate-secret", summary: "Replace the signing secret, with an overlap", tag: "Secrets", errors: []int{http.StatusConflict}}, s.rotateSecret)
	handle(s, operation{method: http.MethodPost, path: "/subscribers/{id}/secret/retire", id: "retire-secret", summary: "End the previous secret now", tag: "Secrets", status: http.StatusNoContent}, s.retireSecret)
	handle(s, operation{method: http.MethodPost, path: "/subscribers/{id}/token/rotate", id: "rotate-token", summary: "Replace the bearer token", tag: "Secrets", errors: []int{http.StatusConflict}}, s.rotateToken)
}

func (s *server) operatorSecret(ctx context.Context, _ caller, _ *struct{}) (*answer[ShownSecret], error) {
	secret, err := s.registry.SigningSecret(ctx, sender.Operator)
	if err != nil {
		return nil, err
	}
	return &answer[ShownSecret]{ShownSecret{secret.Reveal()}}, nil
}

func (s *server) rotateSecret(ctx context.Context, c caller, in *rotateSecret) (*answer[RotatedSecret], error) {
	overlap := 24 * time.Hour
	if in.Body != nil && in.Body.OverlapSeconds != nil {
		overlap = time.Duration(*in.Body.OverlapSeconds) * time.Second
	}
	body, err := once(ctx, s.answers, c, in.Key, overlap, func(tx *sql.Tx) (RotatedSecret, error) {
		if overlap == 0 { // in an emergency it must not matter how many are valid
			secret, err := s.registry.RevokeSecretTx(ctx, tx, in.ID, signing.Secret{})
			return RotatedSecret{secret.Reveal(), time.Now().UTC().Truncate(time.Microsecond)}, err
		}
		secret, until, err := s.registry.RotateSecretTx(ctx, tx, in.ID, &sender.Rotation{Overlap: overlap})
		return RotatedSecret{secret.Reveal(), until}, err
	})
	return &answer[RotatedSecret]{body}, err
}

func (s *server) retireSecret(ctx context.Context, _ caller, in *SubscriberPath) (*struct{}, error) {
	return nil, s.db.inTx(ctx, func(tx *sql.Tx) error { return s.registry.RetireSecretTx(ctx, tx, in.ID) })
}

func (s *server) rotateToken(ctx context.Context, c caller, in *rotateToken) (*answer[RotatedToken], error) {
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
