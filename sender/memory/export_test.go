package memory

import "github.com/surehook/surehook/sender"

// SettingsOf returns the settings of a subscription, deleted or not.
func (s *Store) SettingsOf(id string) sender.Settings {
	return cloneSettings(s.subscription[id].Settings)
}
