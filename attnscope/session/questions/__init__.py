"""Questions about a reading: functions that the verbs' answers are made of."""
