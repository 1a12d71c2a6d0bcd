package receiver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
)

const (
	// challengeType is the type of the event by which a sender asks a callback URL
	// for a proof.
	challengeType = "webhook.challenge"
	// challengedPrefix begins the Result of a challenge. The answer follows, so that
	// AnswerTo has it: JSON, or plain text.
	challengedPrefix     = "challenged "
	challengedTextPrefix = "challenged-text "
	// maxChallengeToken bounds what is sent back.
	maxChallengeToken = 256
)

// Challenged reports whether the request was a sender's challenge: a signed event of the
// type webhook.challenge, or a question that [Envelope].Challenge or TextChallenge answered.
// With it, a sender finds out whether the receiver has the secret and wants its events.
// Nothing was stored and the function did not run. [AnswerTo] returns the answer that the
// sender expects.
func (r Result) Challenged() bool {
	_, is := r.challengeAnswer()
	return is
}

// challengeAnswer returns what is sent back, with a media type under which no browser takes
// it for a page.
func (r Result) challengeAnswer() (a Answer, is bool) {
	if text, is := strings.CutPrefix(string(r), challengedTextPrefix); is {
		return plainText(text), true
	}
	text, is := strings.CutPrefix(string(r), challengedPrefix)
	return harmless(mediaJSON, text), is
}

func plainText(text string) Answer { return harmless("text/plain; charset=utf-8", text) }

func harmless(media, text string) Answer {
	return Answer{Status: http.StatusOK, Body: []byte(text), Header: http.Header{"Content-Type": {media}, "X-Content-Type-Options": {"nosniff"}}}
}

// answerChallenge is the end of a verified challenge.
func (r *Receiver[Tx]) answerChallenge(ctx context.Context, ev Event) {
	r.counts.add(&r.counts.Challenged)
	r.log().LogAttrs(ctx, slog.LevelInfo, "receiver: challenge answered", eventAttrs(ev)...)
	if hook := r.cfg.Hooks.Challenged; hook != nil {
		r.hook(ctx, func() { hook(ctx, ev) })
	}
}

// tokenOf accepts only characters that are harmless in an answer, since the token is sent
// back.
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
