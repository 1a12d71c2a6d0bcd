package receiver

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/surehook/surehook/signing"
)

// Handshake answers the questions that some senders ask a URL before they send events, and
// that are no signed events. Only what is set is answered. [Envelope].Challenge is for
// questions that are signed, such as Slack's and Zoom's.
//
// Nobody has signed such a question. So an answer does not prove who asks, and changes
// nothing here, except by HookSecret.
type Handshake struct {
	// VerifyToken answers Meta: a GET whose hub.verify_token is this text gets its
	// hub.challenge back. You choose the text and enter it at Meta. It has 16 bytes at least.
	VerifyToken string

	// EchoChallenge answers Dropbox and Nylas: a GET with the parameter challenge gets it
	// back.
	EchoChallenge bool

	// CRC answers X: a GET with crc_token gets an HMAC of it, keyed by the app's secret,
	// which is also the key of the signatures. X leaves it to you that nobody has a body
	// signed in that way: a token that is JSON, or has other characters than letters,
	// digits, "+", "/", "=", "-" and "_", is refused. A form or plain text can look like any
	// token, so New refuses CRC beside an [Envelope].ContentTypes that has other types than
	// application/json and …+json. If you call Answer without a Receiver, the URL must take
	// JSON alone.
	CRC signing.Secret

	// ValidationToken answers Microsoft Graph: a POST with validationToken in its query gets
	// it back as plain text.
	ValidationToken bool

	// OktaChallenge answers Okta: a GET with the header X-Okta-Verification-Challenge gets
	// its value back as {"verification": …}.
	OktaChallenge bool

	// Head answers Trello: a HEAD gets 200 and nothing.
	Head bool

	// Origins answers CloudEvents' HTTP webhooks, such as those of Azure Event Grid: an
	// OPTIONS whose WebHook-Request-Origin is one of these names may send. "*" is every
	// name. WebHook-Request-Callback is not called: it would have this server post to
	// whatever a stranger names.
	//
	// Source: HTTP 1.1 Web Hooks for Event Delivery 1.0.2, section 4.
	Origins []string

	// Rate is how many requests a minute these senders may make at most. The receiver does
	// not enforce it.
	// Defaults to 0: any number.
	Rate int

	// HookSecret answers Asana: a POST without a signature and with the header
	// X-Hook-Secret, which has the secret of all that follows. The header is returned if
	// HookSecret returns nil.
	//
	// Anybody can post such a header. HookSecret must return an error unless it is you who
	// creates a webhook right now, at this very URL, and must never replace a secret that is
	// there. Give each webhook a path that nobody can guess.
	HookSecret func(ctx context.Context, m signing.Message, secret signing.Secret) error
}

// Format writes h with every verb, and of VerifyToken whether it is set.
func (h Handshake) Format(f fmt.State, verb rune) {
	type plain Handshake // has no Format
	if h.VerifyToken != "" {
		h.VerifyToken = "[hidden]"
	}
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), plain(h))
}

const (
	hookSecretHeader   = "X-Hook-Secret"
	minVerifyToken     = 16
	maxHandshakeQuery  = 2048
	maxHandshakeAnswer = 256
)

func (h *Handshake) check(e *Envelope) error {
	if h == nil {
		return nil
	}
	var problems []error
	if n := len(h.VerifyToken); n > 0 && n < minVerifyToken {
		problems = append(problems, fmt.Errorf("receiver: Handshake.VerifyToken has %d bytes: it must have at least %d, which nobody can guess", n, minVerifyToken))
	}
	if h.CRC != (signing.Secret{}) && h.EchoChallenge {
		problems = append(problems, errors.New("receiver: Handshake has CRC and EchoChallenge, which no sender asks for both: set one"))
	}
	if h.CRC != (signing.Secret{}) && e != nil && slices.ContainsFunc(e.ContentTypes, notJSON) {
		problems = append(problems, errors.New("receiver: Handshake.CRC needs an Envelope.ContentTypes of JSON alone: anybody gets the signature of what could be a form or a text. Give X a receiver of its own"))
	}
	for _, origin := range h.Origins {
		if origin != "*" && (origin == "" || len(origin) > maxHandshakeAnswer || strings.ContainsFunc(origin, func(c rune) bool { return notInToken(c) && c != '.' })) {
			problems = append(problems, fmt.Errorf("receiver: Handshake.Origins has %q: it must be a name like eventemitter.example.com, or *", origin))
		}
	}
	if h.Rate < 0 {
		problems = append(problems, fmt.Errorf("receiver: Handshake.Rate is %d: it must be a number of requests a minute, or 0 for any", h.Rate))
	}
	return errors.Join(problems...)
}

// Answer answers a request that is a handshake. is false for another request, or for a
// handshake of a kind that is not set. The request then goes through the receiver as
// usual. An error is answered with 401, and the log has it.
func (h *Handshake) Answer(ctx context.Context, m signing.Message) (a Answer, is bool, err error) {
	if h == nil {
		return a, false, nil
	}
	switch m.Method {
	case http.MethodPost:
		if a, is, err = h.answerSecret(ctx, m); is {
			return a, is, err
		}
		return h.answerValidation(m)
	case http.MethodOptions:
		return h.answerOrigin(m)
	case http.MethodHead:
		return Answer{Status: http.StatusOK}, h.Head, nil
	case http.MethodGet:
		return h.answerGet(m)
	}
	return a, false, nil
}

// queryOf returns nil for a query that cannot be a handshake's.
func queryOf(m signing.Message) url.Values {
	_, query, found := strings.Cut(m.URL, "?")
	if !found || len(query) > maxHandshakeQuery {
		return nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil
	}
	return values
}

func (h *Handshake) answerGet(m signing.Message) (a Answer, is bool, err error) {
	if asked := canonical(m.Header)[oktaHeader]; h.OktaChallenge && len(asked) > 0 {
		return answerOkta(asked)
	}
	values := queryOf(m)
	switch {
	case h.VerifyToken != "" && values.Has("hub.challenge"):
		return h.answerHub(values)
	case h.EchoChallenge && values.Has("challenge"):
		return echo(values, "challenge")
	case h.CRC != (signing.Secret{}) && values.Has("crc_token"):
		return h.answerCRC(values)
	}
	return a, false, nil
}

func (h *Handshake) answerHub(values url.Values) (a Answer, is bool, err error) {
	mode, modeErr := once(values, "hub.mode")
	token, tokenErr := once(values, "hub.verify_token")
	// Hashes have one length, so that the time tells nothing of the token's.
	stated, own := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(h.VerifyToken))
	if subtle.ConstantTimeCompare(stated[:], own[:]) != 1 || mode != "subscribe" || modeErr != nil || tokenErr != nil {
		return a, true, errors.New("receiver: a handshake's hub.verify_token is not Handshake.VerifyToken, or its hub.mode is not subscribe")
	}
	return echo(values, "hub.challenge")
}

// echo returns only characters that are harmless in an answer.
func echo(values url.Values, name string) (a Answer, is bool, err error) {
	text, err := once(values, name)
	if err != nil {
		return a, true, err
	}
	if failure := checkEcho("a handshake's "+name, text); failure != nil {
		return a, true, failure
	}
	return plainText(text), true, nil
}

func checkEcho(what, text string) *Error {
	if text == "" || len(text) > maxHandshakeAnswer || strings.ContainsFunc(text, func(c rune) bool { return notInToken(c) && c != '.' && c != '~' }) {
		return fail(ReasonDecode, fmt.Errorf("%s must have 1 to %d letters, digits, hyphens, underscores, full stops and tildes", what, maxHandshakeAnswer))
	}
	return nil
}

func once(values url.Values, name string) (string, error) {
	if len(values[name]) != 1 {
		return "", fmt.Errorf("receiver: a handshake has %s %d times: it must be there once", name, len(values[name]))
	}
	return values[name][0], nil
}

func (h *Handshake) answerCRC(values url.Values) (a Answer, is bool, err error) {
	token, err := once(values, "crc_token")
	if err == nil && (token == "" || len(token) > maxHandshakeAnswer || json.Valid([]byte(token)) ||
		strings.ContainsFunc(token, func(c rune) bool { return notInToken(c) && c != '+' && c != '/' && c != '=' })) {
		err = errors.New("receiver: a handshake's crc_token is not one of X's: an answer could be the signature of a body")
	}
	if err != nil {
		return a, true, err
	}
	return harmless(mediaJSON, `{"response_token":"sha256=`+base64.StdEncoding.EncodeToString(macOf(h.CRC, token))+`"}`), true, nil
}

func macOf(secret signing.Secret, text string) []byte {
	mac := hmac.New(sha256.New, []byte(secret.Reveal()))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func (h *Handshake) answerSecret(ctx context.Context, m signing.Message) (a Answer, is bool, err error) {
	if h.HookSecret == nil {
		return a, false, nil
	}
	header := canonical(m.Header)
	values := header[hookSecretHeader]
	if len(values) == 0 || len(header["X-Hook-Signature"]) > 0 {
		return a, false, nil
	}
	if len(values) > 1 {
		return a, true, errors.New("receiver: a handshake has several X-Hook-Secret")
	}
	secret, err := signing.ParseTextSecret(values[0])
	if err != nil {
		return a, true, fmt.Errorf("receiver: a handshake's X-Hook-Secret: %w", err)
	}
	var refused error
	if err := contain(func() error {
		refused = h.HookSecret(ctx, m, secret)
		return nil
	}); err != nil {
		return a, true, fmt.Errorf("receiver: Handshake.HookSecret: %w", err)
	}
	if refused != nil {
		return a, true, fmt.Errorf("receiver: Handshake.HookSecret refuses: %w", refused)
	}
	return Answer{Status: http.StatusOK, Header: http.Header{hookSecretHeader: {values[0]}}}, true, nil
}

// handshake answers a request by Config.Handshake, if it is one.
func (r *Receiver[Tx]) handshake(w http.ResponseWriter, req *http.Request) bool {
	if r.cfg.Handshake == nil {
		return false
	}
	ctx := req.Context()
	conn := connect(w, req, r.cfg.Timeout)
	a, is, err := r.cfg.Handshake.Answer(ctx, signing.Message{Method: req.Method, URL: targetOf(req), Header: req.Header})
	if !is {
		return false
	}
	conn.leave() // a handshake is in the query or the headers: nobody reads the body
	switch {
	case err != nil:
		failure := fail(ReasonSignature, err)
		r.rejected(r.begin(ctx, req.Header), failure)
		AnswerTo("", failure).write(w)
	default:
		r.counts.add(&r.counts.Challenged)
		r.log().LogAttrs(ctx, slog.LevelInfo, "receiver: handshake answered")
		a.write(w)
	}
	return true
}
