package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/catalogue/shop"
)

type triggerOptions struct {
	target
	object, data, dataFile, payload, subscriber, to, secretFile string
	version                                                     int64
	list                                                        bool
	timeout                                                     time.Duration
}

func triggerCommand() command {
	return command{
		name: "trigger", summary: "publish a sample event, or post one to a URL",
		args: "TYPE", arguments: [2]int{0, 1},
		about: `Publishes an event through the server or in the database: from there it goes to all
who asked for its type. With -to it is posted to one URL alone, signed with your own
secret, and published nowhere. For the types of the samples (-list), object and data need
not be given.`,
		example: "surehook trigger invoice.paid\nsurehook trigger order.packed -object order/42 -data '{\"boxes\":3}' -to http://127.0.0.1:3000/webhooks -secret-file secret.txt",
		flags: func(f *flag.FlagSet) func(context.Context, *terminal, []string) error {
			o := &triggerOptions{}
			o.target.flags(f)
			f.BoolVar(&o.list, "list", false, "list the samples")
			f.StringVar(&o.object, "object", "", "what it is about, as `type/id` (default: the sample's)")
			f.StringVar(&o.data, "data", "", "its data, as `JSON` (default: the sample's)")
			f.StringVar(&o.dataFile, "data-file", "", "a `file` with the data")
			f.Int64Var(&o.version, "version", 0, "the object's `version` (default: its next; with -to, the time in seconds)")
			f.StringVar(&o.payload, "payload-version", "", "the version of its data, as a `date` of your catalogue (default: none, and with -to the sample's)")
			f.StringVar(&o.subscriber, "subscriber", "", "the `id` of the subscriber that it is for (default: everyone who asks for its type)")
			f.StringVar(&o.to, "to", "", "post it to this `URL` alone")
			f.StringVar(&o.secretFile, "secret-file", "", "with -to: a `file` with the secret to sign with (or WEBHOOK_SECRET)")
			f.DurationVar(&o.timeout, "timeout", 10*time.Second, "with -to: how long the endpoint may take to answer")
			return func(ctx context.Context, t *terminal, args []string) error {
				if o.list {
					return listSamples(t)
				}
				if len(args) == 0 {
					return errors.New("which type? surehook trigger -list shows the samples")
				}
				e, err := o.event(args[0])
				if err != nil {
					return err
				}
				if o.to != "" {
					return triggerTo(ctx, t, o, e)
				}
				return publish(ctx, t, o, e)
			}
		},
	}
}

// sample is an event to try with.
type sample struct {
	Type    string          `json:"type"`
	Object  object          `json:"object"`
	Data    json.RawMessage `json:"data"`
	version string          // of its data
	when    string
}

// samples are the examples of a shop's catalogue.
func samples() (all []sample, err error) {
	types, err := shop.New()
	if err != nil {
		return nil, err
	}
	for _, t := range types.Types() {
		newest := t.Newest()
		e := newest.Examples[0]
		all = append(all, sample{t.Name, object{Type: t.Object, ID: e.ObjectID}, e.Data, newest.Since, t.Description})
	}
	return all, nil
}

func listSamples(t *terminal) error {
	all, err := samples()
	if err != nil {
		return err
	}
	if t.json {
		return t.encode(map[string]any{"data": all})
	}
	rows := [][]string{{"TYPE", "OBJECT", "WHEN"}}
	for _, s := range all {
		rows = append(rows, []string{s.Type, s.Object.Type + "/" + s.Object.ID, s.when})
	}
	t.table(rows)
	return nil
}

// event is the sample of a type with what the flags say.
func (o *triggerOptions) event(eventType string) (sender.Event, error) {
	e := sender.Event{Type: eventType, Version: o.version, Subscriber: o.subscriber}
	all, err := samples()
	if err != nil {
		return e, err
	}
	for _, s := range all {
		if s.Type == eventType {
			e.Object, e.Data = sender.Object(s.Object), s.Data
			if o.to != "" { // the catalogue of whoever reads a database may not have it
				e.PayloadVersion = s.version
			}
		}
	}
	switch about, id, ok := strings.Cut(o.object, "/"); {
	case ok && about != "" && id != "":
		e.Object = sender.Object{Type: about, ID: id}
	case o.object != "":
		return e, fmt.Errorf("-object is %q: it must be like invoice/in_1", o.object)
	case e.Object.ID == "":
		return e, fmt.Errorf("there is no sample of %q: give -object TYPE/ID, and -data if it has some (surehook trigger -list shows the samples)", eventType)
	}
	data := []byte(o.data)
	if o.dataFile != "" {
		if o.data != "" {
			return e, errors.New("there are both -data and -data-file: give one of them")
		}
		if data, err = os.ReadFile(o.dataFile); err != nil {
			return e, fmt.Errorf("-data-file: %w", err)
		}
	}
	if o.data != "" || o.dataFile != "" {
		if !json.Valid(data) {
			return e, errors.New("the data is not JSON: it must be like {\"amount\":4200}, in single quotation marks for the shell")
		}
		e.Data, e.PayloadVersion = json.RawMessage(data), ""
	}
	if o.payload != "" {
		e.PayloadVersion = o.payload
	}
	return e, nil
}

func publish(ctx context.Context, t *terminal, o *triggerOptions, e sender.Event) error {
	if o.secretFile != "" {
		return errors.New("-secret-file is for -to: what is published is signed with each subscriber's own secret")
	}
	b, err := o.open(ctx, t)
	if err != nil {
		return err
	}
	defer b.close()
	ref, err := b.publish(ctx, e)
	if err != nil {
		return err
	}
	sent := sentEvent{ref.ID, e.Type, object(e.Object), ref.Version}
	if t.json {
		return t.encode(map[string]any{"event": sent})
	}
	t.say("published %s: %s %s/%s, version %d", sent.ID, sent.Type, sent.Object.Type, sent.Object.ID, sent.Version)
	t.say("surehook deliveries -event %s shows where it goes", sent.ID)
	return nil
}

func triggerTo(ctx context.Context, t *terminal, o *triggerOptions, e sender.Event) error {
	if o.server != "" || o.tokenFile != "" || o.place.database != "" || o.place.file != "" || o.subscriber != "" {
		return errors.New("with -to nothing is published: leave out -server, -token-file, -database and -subscriber")
	}
	secret, from, err := secretOf(o.secretFile, t)
	if err != nil {
		return err
	}
	if from == "" {
		return errors.New("there is no secret to sign with: give -secret-file or WEBHOOK_SECRET, the same that the endpoint verifies with")
	}
	if e.Version == 0 {
		e.Version = time.Now().Unix() // above that of the run before
	}
	d, err := e.Draft(time.Now(), 1<<20)
	if err != nil {
		return answered(err)
	}
	to, err := newPoster(o.to, secret, o.timeout)
	if err != nil {
		return err
	}
	a := to.post(ctx, d.ID, d.Body(e.Version), 1)
	sent := sentEvent{d.ID, e.Type, object(e.Object), e.Version}
	if t.json {
		line := attempted{Kind: "attempt", Event: sent, Attempt: 1, StatusCode: orNull(a.status), DurationMS: a.took.Milliseconds(), Delivered: a.good()}
		if a.err != nil {
			line.Error = orNull(a.err.Error())
		}
		err = t.encode(line)
	} else {
		t.say("%s %s/%s, version %d  %s  → %v", sent.Type, sent.Object.Type, sent.Object.ID, sent.Version, sent.ID, &a)
	}
	if err == nil && !a.good() {
		err = errSaid
	}
	return err
}
