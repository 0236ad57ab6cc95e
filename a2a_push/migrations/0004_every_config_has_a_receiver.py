import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('a2a_push', '0003_known_receivers'),
    ]

    operations = [
        migrations.AlterField(
            model_name='pushconfig',
            name='receiver',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='configs', to='a2a_push.receiver'),
        ),
    ]
