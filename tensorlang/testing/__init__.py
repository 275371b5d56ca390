"""What users test their schedules with: strategies, and an oracle that knows how far is too far."""
