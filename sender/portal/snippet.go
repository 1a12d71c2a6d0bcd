package portal

// snippet shows how a receiver checks signatures with two secrets.
type snippet struct {
	Value, Name string
	Code        string
	Chosen      bool
}

// snippets are all of them; the first one is chosen unless another one is.
func snippets(lang string) []snippet {
	all := []snippet{
		{Value: "go", Name: "Go", Code: `// both secrets while one replaces the other
next, err := signing.ParseSecret(os.Getenv("WEBHOOK_SECRET_NEXT"))
last, err := signing.ParseSecret(os.Getenv("WEBHOOK_SECRET"))
keys, err := signing.NewKeyring(signing.Key{Secret: next}, signing.Key{Secret: last})
verifier, err := signing.NewVerifier(keys, nil)`},
		{Value: "js", Name: "Node", Code: `// npm install standardwebhooks; body is the raw text of the request
import { Webhook } from "standardwebhooks";

function verified(body, headers) {
  try {
    return new Webhook(process.env.WEBHOOK_SECRET_NEXT).verify(body, headers);
  } catch {
    return new Webhook(process.env.WEBHOOK_SECRET).verify(body, headers);
  }
}`},
		{Value: "py", Name: "Python", Code: `# pip install standardwebhooks; body is the raw text of the request
import os
from standardwebhooks import Webhook, WebhookVerificationError

def verified(body, headers):
    try:
        return Webhook(os.environ["WEBHOOK_SECRET_NEXT"]).verify(body, headers)
    except WebhookVerificationError:
        return Webhook(os.environ["WEBHOOK_SECRET"]).verify(body, headers)`},
	}
	chosen := 0
	for i := range all {
		if all[i].Value == lang {
			chosen = i
		}
	}
	all[chosen].Chosen = true
	return all
}
