

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('a2a_tasks', '0023_quarantine'),
    ]

    operations = [
        migrations.AddField(
            model_name='task',
            name='batches',
            field=models.IntegerField(db_default=0, default=0),
        ),
    ]
