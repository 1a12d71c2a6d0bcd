package jose

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/surehook/surehook/internal/keyfetch"
)

// KeysConfig has the settings of keys that are fetched. The zero value and nil are valid.
type KeysConfig struct {
	// Timeout bounds one fetch. Defaults to 3 s.
	Timeout time.Duration
	// KeepFor is how long keys are used before they are fetched again. Defaults to 1 h.
	KeepFor time.Duration
	// StaleFor is how much longer they are used while the sender's host is away. A key that
	// the sender has taken back can pass for that long. Defaults to 24 h.
	StaleFor time.Duration
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

func (c *KeysConfig) parts(host string) (*keyfetch.Client, *keyfetch.CacheConfig, error) {
	var cfg KeysConfig
	if c != nil {
		cfg = *c
	}
	if cfg.Timeout < 0 || cfg.KeepFor < 0 || cfg.StaleFor < 0 {
		return nil, nil, fmt.Errorf("jose: KeysConfig.Timeout is %v, KeepFor %v and StaleFor %v: they must be positive, or 0 for their defaults", cfg.Timeout, cfg.KeepFor, cfg.StaleFor)
	}
	if cfg.StaleFor == 0 {
		cfg.StaleFor = 24 * time.Hour
	}
	client := keyfetch.NewClient([]string{host}, &keyfetch.ClientConfig{Timeout: cfg.Timeout})
	return client, &keyfetch.CacheConfig{KeepFor: cfg.KeepFor, StaleFor: cfg.StaleFor, Now: cfg.Now}, nil
}

type set = map[string]crypto.PublicKey

type jwks struct {
	url    string
	client *keyfetch.Client
	cache  *keyfetch.Cache[set]
}

// JWKS has the keys of the JSON Web Key Set at a URL, which must be https, without a port.
// Nothing is fetched before the first token.
func JWKS(from string, cfg *KeysConfig) (Keys, error) {
	u, err := url.Parse(from)
	if err != nil {
		return nil, errors.New("jose: the URL of a key set is not well-formed")
	}
	client, caching, err := cfg.parts(u.Host)
	if err != nil {
		return nil, err
	}
	if u.Port() != "" || u.Host == "" || client.Check(from) != nil {
		return nil, errors.New("jose: the URL of a key set must be https, with a host and without a port: https://example.com/jwks.json")
	}
	k := &jwks{url: from, client: client}
	k.cache = keyfetch.NewCache(k.fetch, caching)
	return k, nil
}

// GoogleKeys has the keys of Google's tokens, from https://www.googleapis.com/oauth2/v3/certs.
func GoogleKeys(cfg *KeysConfig) (Keys, error) {
	return JWKS("https://www.googleapis.com/oauth2/v3/certs", cfg)
}

func (k *jwks) fetch(ctx context.Context, from string) (set, time.Time, error) {
	text, err := k.client.Get(ctx, from)
	if err != nil {
		return nil, time.Time{}, err
	}
	keys, err := ParseJWKS(text)
	return keys, time.Time{}, err
}

// Key looks again, within bounds, for a key that was not there: the sender may have made it
// since.
func (k *jwks) Key(id string) (crypto.PublicKey, error) {
	for _, get := range []func(string) (set, error){k.cache.Get, k.cache.Renew} {
		keys, err := get(k.url)
		if err != nil {
			return nil, err
		}
		if key, there := keys[id]; there {
			return key, nil
		}
	}
	return nil, errUnknown
}

type plaidKeys struct {
	url        string
	id, secret string
	client     *keyfetch.Client
	cache      *keyfetch.Cache[crypto.PublicKey]
	now        func() time.Time
}

// PlaidKeys has the keys of Plaid's tokens, each asked for with an account's client id and
// secret: production, or else in the sandbox.
//
// Source: https://plaid.com/docs/api/webhooks/webhook-verification/
func PlaidKeys(production bool, clientID, secret string, cfg *KeysConfig) (Keys, error) {
	if clientID == "" || secret == "" {
		return nil, errors.New("jose: PlaidKeys needs the account's client id and secret")
	}
	host := "sandbox.plaid.com"
	if production {
		host = "production.plaid.com"
	}
	client, caching, err := cfg.parts(host)
	if err != nil {
		return nil, err
	}
	k := &plaidKeys{url: "https://" + host + "/webhook_verification_key/get", id: clientID, secret: secret, client: client, now: caching.Now}
	if k.now == nil {
		k.now = time.Now
	}
	k.cache = keyfetch.NewCache(k.fetch, caching)
	return k, nil
}

// Format writes whose keys they are, whatever the verb, and not the account's secret.
func (k *plaidKeys) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "jose.PlaidKeys(%s)", k.url) }

func (k *plaidKeys) Key(id string) (crypto.PublicKey, error) { return k.cache.Get(id) }

func (k *plaidKeys) fetch(ctx context.Context, id string) (key crypto.PublicKey, until time.Time, err error) {
	ask, err := json.Marshal(map[string]string{"client_id": k.id, "secret": k.secret, "key_id": id})
	if err != nil {
		return nil, until, err
	}
	text, err := k.client.Post(ctx, k.url, ask)
	if err != nil {
		return nil, until, err
	}
	var answer struct {
		Key jwk `json:"key"`
	}
	if json.Unmarshal(text, &answer) != nil || answer.Key.ID != id {
		return nil, until, errors.New("jose: Plaid's answer has no key of that id")
	}
	if end := answer.Key.Expired; end != nil {
		if until = time.Unix(*end, 0); !k.now().Before(until) {
			return nil, until, fmt.Errorf("%w any more", errUnknown)
		}
	}
	key, err = answer.Key.public()
	return key, until, err
}
