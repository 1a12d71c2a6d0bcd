// Package lru has a map of bounded size, which forgets the entry that was used longest
// ago.
package lru

import "container/list"

// Map holds up to a number of entries. It is not safe for concurrent use.
type Map[K comparable, V any] struct {
	most int
	by   map[K]*list.Element
	used list.List // of entry[K, V], the one used last in front
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// New returns a Map of at most most entries, which is at least one.
func New[K comparable, V any](most int) *Map[K, V] {
	return &Map[K, V]{most: max(1, most), by: map[K]*list.Element{}}
}

// Get returns a key's value, and makes it the one that was used last.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	e := m.by[key]
	if e == nil {
		return value, false
	}
	m.used.MoveToFront(e)
	return e.Value.(entry[K, V]).value, true
}

// Put sets a key's value, and makes it the one that was used last. If there are too
// many entries it forgets the one that was used longest ago.
func (m *Map[K, V]) Put(key K, value V) {
	if e := m.by[key]; e != nil {
		e.Value = entry[K, V]{key, value}
		m.used.MoveToFront(e)
		return
	}
	if m.used.Len() == m.most {
		m.DeleteOldest()
	}
	m.by[key] = m.used.PushFront(entry[K, V]{key, value})
}

// Delete forgets a key.
func (m *Map[K, V]) Delete(key K) {
	if e := m.by[key]; e != nil {
		m.used.Remove(e)
		delete(m.by, key)
	}
}

// DeleteOldest forgets the entry that was used longest ago, and returns it; false: the
// map is empty.
func (m *Map[K, V]) DeleteOldest() (value V, ok bool) {
	e := m.used.Back()
	if e == nil {
		return value, false
	}
	was := m.used.Remove(e).(entry[K, V])
	delete(m.by, was.key)
	return was.value, true
}

// Len is the number of entries.
func (m *Map[K, V]) Len() int { return m.used.Len() }
