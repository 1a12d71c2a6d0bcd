package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

	"github.com/surehook/surehook/sender"
)

// caller is the owner of a request's token: the operator, or a subscriber.
type caller struct {
	id   string
	path string // of the request, for its Idempotency-Key
}

func (c caller) operator() bool { return c.id == sender.Operator }

// scope is the subscriber to which the library's lists are restricted. It is empty for
// the operator, who sees all.
func (c caller) scope() string {
	if c.operator() {
		return ""
	}
	return c.id
}

// owns tells whether the caller may know of a subscriber's things. For any other caller
// they do not exist: 404.
func (c caller) owns(subscriber string) bool { return c.operator() || c.id == subscriber }

type callerKey struct{}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// hashToken is how tokens are stored. They have 256 random bits, so a plain hash
// keeps them; a slow one would only slow down every request.
func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// open are the paths that need no token.
var open = map[string]bool{"/healthz": true, "/readyz": true, "/openapi.json": true}

// authenticated tells who calls, or answers 401.
func (s *service) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if open[r.URL.Path] {
			unasked(w, r)
			r.Body, r.ContentLength = http.NoBody, 0 // nobody asks for one, and anybody could send it
			next.ServeHTTP(w, r)
			return
		}
		id, err := s.whose(r.Context(), r.Header.Values("Authorization"))
		if err != nil {
			refusal(err).logged(r.Context(), s.log, "authenticate").write(w)
			return
		}
		c := caller{id: id, path: r.Method + " " + r.URL.Path}
		if p := s.mayAsk(c); p != nil {
			p.write(w)
			return
		}
		ctx := context.WithValue(r.Context(), callerKey{}, c)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func unauthorized() *Problem {
	return problem(http.StatusUnauthorized, "the request needs the header Authorization: Bearer TOKEN, once, with the token of the operator or of a subscriber")
}

// whose is the id of the token's owner. Hashes are compared in constant time; which
// one the index finds tells nothing of the token.
func (s *service) whose(ctx context.Context, headers []string) (string, error) {
	refused := unauthorized()
	if len(headers) != 1 {
		return "", refused
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	token = strings.TrimLeft(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", refused
	}
	hash := hashToken(token)
	if same(hash, s.operatorHash) {
		return sender.Operator, nil
	}
	var id, stored string
	err := s.asking.do(ctx, func(ctx context.Context) error {
		return s.db.row(ctx, nil, "SELECT id, token_hash FROM server_subscribers WHERE token_hash = $1 AND deleted_at IS NULL", hash).Scan(&id, &stored)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", refused
	case err != nil:
		return "", err
	case !same(hash, stored):
		return "", refused
	}
	return id, nil
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
