"""Taking over tables that programs without transactions have written."""
