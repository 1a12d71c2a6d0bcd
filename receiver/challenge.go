package receiver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

const (
	// challengeType is the type of the event by which a sender asks a callback URL
	// for a proof.
	challengeType = "webhook.challenge"
	// challengedPrefix begins the Result of a challenge. Its token follows, so that
	// AnswerTo has it.
	challengedPrefix = "challenged "
	// maxChallengeToken bounds what is sent back.
	maxChallengeToken = 256
)

// Challenged tells that the request was a sender's challenge: a signed event of
// the type webhook.challenge, by which a sender finds out whether the receiver has
// the secret and wants its events. Nothing was stored and the function did not
// run; [AnswerTo] answers with the token that the sender expects.
func (r Result) Challenged() bool {
	_, ok := r.challengeToken()
	return ok
}

func (r Result) challengeToken() (string, bool) {
	return strings.CutPrefix(string(r), challengedPrefix)
}

// answerChallenge is the end of a verified challenge. Only what cannot be anything
// but a token is sent back.
func (r *Receiver[Tx]) answerChallenge(ctx context.Context, ev Event) (Result, *Error) {
	token, err := tokenOf(ev)
	if err != nil {
		failure := fail(ReasonDecode, fmt.Errorf("a challenge's data: %w", err))
		r.rejected(ctx, failure)
		return "", failure
	}
	r.log().LogAttrs(ctx, slog.LevelInfo, "receiver: challenge answered", eventAttrs(ev)...)
	if hook := r.cfg.Hooks.Challenged; hook != nil {
		r.hook(ctx, func() { hook(ctx, ev) })
	}
	return Result(challengedPrefix + token), nil
}

func tokenOf(ev Event) (token string, err error) {
	if ev.Data == nil {
		return "", errors.New("there is none")
	}
	all := newFields("token")
	err = members(ev.Data, func(name, value []byte) error {
		known, err := all.add(name)
		if err == nil && known != "" {
			token, err = text(value)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	if token == "" || len(token) > maxChallengeToken || strings.ContainsFunc(token, notInToken) {
		return "", fmt.Errorf("the token must have 1 to %d letters, digits, hyphens and underscores", maxChallengeToken)
	}
	return token, nil
}

func notInToken(c rune) bool {
	return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_')
}
