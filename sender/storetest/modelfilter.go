package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/filter"
)

// Filters and payload versions of the model. The data of an event have one member, which is
// named after their payload version, so that a filter over one version says nothing of another.

// content draws a filter over the content of one payload version, or none.
func (m *model) content() *filter.Filter {
	return filter.Read([]string{
		"", "", "", `{"data.2026-03-01":{"gte":1}}`, `{"data.2026-01-01":{"gte":1}}`, `{"not":{"data.2026-02-01":1}}`,
	}[m.rand.IntN(6)])
}

// pin draws the payload version of a subscription; "": it is pinned to none.
func (m *model) pin() string {
	return append([]string{""}, versionDates...)[m.rand.IntN(1+len(versionDates))]
}

// payload draws in which version an event is published, or that it does not say.
func (m *model) payload(value string) []byte {
	published := versionDates[1+m.rand.IntN(2)]
	data := `"data":{"` + published + `":` + value + `}}`
	if m.rand.IntN(8) == 0 {
		return []byte("," + data)
	}
	return []byte(`,"payload_version":"` + published + `",` + data)
}

// modelConvert makes the older versions of an event, unless it is about the last object.
func modelConvert(eventType, from, date string, data json.RawMessage) (string, json.RawMessage, error) {
	if bytes.HasSuffix(data, []byte(":2}")) {
		return "", nil, errors.New("it cannot be made")
	}
	return downTo(eventType, from, date, data)
}

// wants tells whether the filter of a subscription matches an event in the version to which it
// is pinned, or cannot be asked. made is false if that version could not be made.
func (s *modelSub) wants(e *modelEvent, convert sender.Convert) (wants, made bool) {
	if e.draft.Subscription != "" || s.Filter == nil {
		return true, true
	}
	body, _, err := convert.Body(e.draft.Type, e.draft.Body(e.version), s.Settings.PayloadVersion)
	return err != nil || s.Filter.Match(body), err == nil
}

// waits tells whether a subscription has yet to get an event, as the last expansion decides.
func (m *model) waits(s *modelSub, e *modelEvent) bool {
	if e.expanded || m.byPair[pair{e.draft.ID, s.ID}] != nil || !s.asks(e) {
		return false
	}
	wants, _ := s.wants(e, m.convert)
	return wants
}

// mustGet tells whether a subscription has yet to get an event, and no part of its expansion can
// have decided otherwise.
func (m *model) mustGet(s *modelSub, e *modelEvent) bool {
	return m.waits(s, e) && !m.passed[pair{e.draft.ID, s.ID}]
}

// notePassed notes what an expansion that has left some may have decided: that a subscription
// does not get an event. The next one may find another filter, or another payload version.
func (m *model) notePassed() {
	for _, e := range m.events {
		for _, s := range m.subs {
			if !e.expanded && s.asks(e) && !m.waits(s, e) {
				m.passed[pair{e.draft.ID, s.ID}] = true
			}
		}
	}
}

// noteMade notes by what a delivery was decided that is made.
func (m *model) noteMade(s *modelSub, e *modelEvent) {
	_, made := s.wants(e, m.convert)
	_, published, _ := sender.SplitBody(e.draft.Body(e.version))
	switch {
	case s.Filter == nil || e.draft.Subscription != "":
	case !made:
		m.saw["made without its filter"]++
	case published.Version > s.Settings.PayloadVersion && m.convert != nil:
		m.saw["made by its filter over an older version"]++
	}
	if m.passed[pair{e.draft.ID, s.ID}] {
		m.saw["made once its filter has changed"]++
	}
}

// noteSkipped notes which filters an event that was expanded has not matched.
func (m *model) noteSkipped(e *modelEvent) {
	if slices.ContainsFunc(m.subs, func(s *modelSub) bool {
		return m.byPair[pair{e.draft.ID, s.ID}] == nil && s.asks(e) && s.Filter.Match(e.draft.Body(e.version))
	}) {
		m.saw["not made by its filter over an older version"]++
	}
}
