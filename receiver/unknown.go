package receiver

import "sync"

// mostUnknownTypes bounds how many types are remembered. Of others nothing is said.
const mostUnknownTypes = 1000

// unknownTypes are those that no route has matched. A route may have been misspelt, and its
// events are acknowledged all the same: so the log names each type, once.
type unknownTypes struct {
	mu   sync.Mutex
	said map[string]bool
}

// first reports whether a type was not named yet.
func (u *unknownTypes) first(eventType string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.said[eventType] || len(u.said) == mostUnknownTypes {
		return false
	}
	if u.said == nil {
		u.said = map[string]bool{}
	}
	u.said[eventType] = true
	return true
}
