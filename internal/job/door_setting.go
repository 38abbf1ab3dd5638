package job

// DoorSetting is what a door keeps about a name of its own, such as the
// settings of an inbox that the engine has no word for. Nobody but the door
// looks into it.
type DoorSetting struct {
	Door Door
	Name string
	Body []byte // JSON
}

// Table implements Row.
func (s *DoorSetting) Table() Table { return DoorSettings }

// Key implements Row.
func (s *DoorSetting) Key() string { return DoorKey(s.Door, s.Name) }

// Due implements Row.
func (s *DoorSetting) Due() Millis { return 0 }

// DoorKey is the key of a row of DoorSettings.
func DoorKey(d Door, name string) string { return string(rune('0'+d)) + name }
