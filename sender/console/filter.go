package console

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/look"
	"github.com/surehook/surehook/sender/replay"
)

const pageSize = 50

// filter has the fields of a list's form as they were typed.
type filter struct {
	Status, Subscription, Subscriber, Event, Type, ObjectType, ObjectID, Since, Until, Class, Code string
	Groups                                                                                         []string // of dead letters

	since, until time.Time
	code         int
	groups       []replay.Group
}

// filterOf reads a form. It reports the problems of all fields at once.
func filterOf(q url.Values) (f filter, err error) {
	f = filter{
		Status: q.Get("status"), Subscription: q.Get("subscription"), Subscriber: q.Get("subscriber"), Event: q.Get("event"), Type: q.Get("type"),
		ObjectType: q.Get("object_type"), ObjectID: q.Get("object_id"), Since: q.Get("since"), Until: q.Get("until"), Class: q.Get("class"), Code: q.Get("code"),
		Groups: q["group"],
	}
	var since, until, code, groups error
	f.since, since = timeOf("since", f.Since)
	f.until, until = timeOf("until", f.Until)
	if f.Code != "" {
		if f.code, code = strconv.Atoi(f.Code); code != nil {
			code = badInput("code: " + strconv.Quote(f.Code) + " is no HTTP status: give one such as 503")
		}
	}
	f.groups, groups = groupsOf(f.Groups)
	return f, errors.Join(since, until, code, groups)
}

func timeOf(name, text string) (time.Time, error) {
	t, ok := look.TypedTime(text)
	if !ok {
		return t, badInput(name + ": " + strconv.Quote(text) + " is no time: give one such as 2006-01-02T15:04 (UTC)")
	}
	return t, nil
}

func (f *filter) object() sender.Object { return sender.Object{Type: f.ObjectType, ID: f.ObjectID} }

// values are the fields that are not empty.
func (f *filter) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{
		"status": f.Status, "subscription": f.Subscription, "subscriber": f.Subscriber, "event": f.Event, "type": f.Type,
		"object_type": f.ObjectType, "object_id": f.ObjectID, "since": f.Since, "until": f.Until, "class": f.Class, "code": f.Code,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if len(f.Groups) > 0 {
		v["group"] = f.Groups
	}
	return v
}

// storable refuses texts that no database can hold, with the name of their field.
func storable(form url.Values) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(form)) {
		for _, text := range form[name] {
			if strings.ContainsRune(text, 0) {
				errs = append(errs, badInput(strconv.Quote(name)+": it contains the character NUL, which is not text: leave it out"))
			} else if !utf8.ValidString(text) {
				errs = append(errs, badInput(strconv.Quote(name)+": it is not UTF-8: send the page's own form"))
			}
		}
	}
	return errors.Join(errs...)
}

// pagesOf is the foot of a list: its links keep the filter.
func pagesOf(q url.Values, parameter, next string, of string) look.Pages {
	p := look.Pages{Of: of}
	link := func(cursor string) string {
		v := url.Values{}
		for name, values := range q {
			if name != "said" && name != parameter {
				v[name] = values
			}
		}
		if cursor != "" {
			v.Set(parameter, cursor)
		}
		return "?" + v.Encode()
	}
	if next != "" {
		p.Next = link(next)
	}
	if q.Get(parameter) != "" {
		p.First = link("")
	}
	return p
}

// classes are the error classes that a filter can select.
var classes = []sender.Class{
	sender.ClassDNS, sender.ClassConnect, sender.ClassTLS, sender.ClassTimeout, sender.ClassReset,
	sender.ClassStatus, sender.ClassRedirect, sender.ClassBlocked, sender.ClassInterrupted, sender.ClassProtocol,
}

var statuses = []sender.Status{
	sender.StatusPending, sender.StatusAwaitingRetry, sender.StatusHeld, sender.StatusDelivered, sender.StatusDeadLettered, sender.StatusCancelled, sender.StatusSuperseded,
}
