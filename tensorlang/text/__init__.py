"""What a user can write as text: schedules and loop IR."""
